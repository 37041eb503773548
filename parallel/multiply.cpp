#include "parallel/multiply.hpp"

#include <algorithm>

namespace lethe {
namespace {

range panels_under(range rows) {
  if (rows.size() == 0) return {};
  return {rows.begin / panel_rows, (rows.end + panel_rows - 1) / panel_rows};
}

/// Kernels are fastest with so many panels at once, and multiples.
constexpr uint32_t together = 4;

/// Of those that are left a thread takes many at first, which are long streams of memory, and few
/// in the end, so that nobody waits long for the last.
uint32_t panels_at_once(uint32_t left, uint32_t total, uint32_t threads) {
  if (threads == 1) return left;
  uint32_t some = std::clamp(left / (2 * threads), 1u, 16 * together);
  if (total < 2 * together * threads) return some;
  return std::min(left, std::max(some / together * together, together));
}

/// Panels of all products, laid end to end.
void multiply_panels(const cpu_row& row, std::span<const product> products, const activations& x,
                     range mine) {
  uint32_t first = 0;  // of the product, in the row of all panels
  for (const product& p : products) {
    range panels = panels_under(p.rows);
    uint32_t begin = std::max(mine.begin, first);
    uint32_t end = std::min(mine.end, first + panels.size());
    if (begin < end) {
      uint32_t row_begin = std::max(p.rows.begin, (panels.begin + begin - first) * panel_rows);
      uint32_t row_end = std::min(p.rows.end, (panels.begin + end - first) * panel_rows);
      float* y = p.y + (row_begin - p.rows.begin);
      row.matmul(*p.weight, {row_begin, row_end, p.of_segments.begin, p.of_segments.end}, x, y,
                 p.stride);
      if (p.bias) row.add_bias(p.bias + row_begin, y, p.stride, x.rows, row_end - row_begin);
    }
    first += panels.size();
  }
}

}  // namespace

void multiply(const cpu_row& row, std::span<const product> products, const activations& x,
              std::atomic<uint32_t>& taken, uint32_t threads) {
  uint32_t total = 0;
  for (const product& p : products) total += panels_under(p.rows).size();
  uint32_t begin = taken.load(std::memory_order_relaxed);
  while (begin < total) {
    uint32_t end = begin + panels_at_once(total - begin, total, threads);
    if (!taken.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
    multiply_panels(row, products, x, {begin, end});
    begin = taken.load(std::memory_order_relaxed);
  }
}

}  // namespace lethe
