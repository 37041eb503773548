#include "parallel/add_tree.hpp"

#include <algorithm>
#include <cstring>

namespace lethe {
namespace {

// Blocks stay in the first-level cache through all levels of the tree.
constexpr size_t block = 1024;

void add(const float* left, const float* right, float* to, size_t n) {
  for (size_t k = 0; k < n; ++k) to[k] = left[k] + right[k];
}

}  // namespace

void add_tree(std::span<float* const> rows, float* to, size_t begin, size_t end) {
  for (; begin < end; begin += block) {
    size_t n = std::min(block, end - begin);
    for (size_t width = 1; width < rows.size(); width *= 2) {
      bool last = width * 2 >= rows.size();
      for (size_t i = 0; i + width < rows.size(); i += 2 * width)
        add(rows[i] + begin, rows[i + width] + begin, (last ? to : rows[i]) + begin, n);
    }
    if (rows.size() == 1 && to != rows[0]) std::memcpy(to + begin, rows[0] + begin, n * 4);
  }
}

}  // namespace lethe
