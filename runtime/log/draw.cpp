#include "runtime/log/draw.hpp"

#include <bit>

namespace lethe {

uint64_t uniform_below(uint64_t end, const randomness& random) {
  check(end > 0);
  const int bits = std::bit_width(end - 1);
  const uint64_t mask = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  // Each try fits with at least an even chance: a source that fails so often is broken.
  for (int tries = 0; tries < 256; ++tries) {
    std::array<std::byte, 8> bytes;
    random(bytes);
    const uint64_t value = load_le<uint64_t>(bytes.data()) & mask;
    if (value < end) return value;
  }
  broken(std::source_location::current());
}

std::vector<uint32_t> draw_nodes(const roster& from, uint32_t k, const randomness& random) {
  const uint64_t total = from.capacity();
  std::vector<uint32_t> drawn;
  while (drawn.size() < k) {
    uint64_t at = uniform_below(total, random);
    uint32_t node = 0;
    for (; at >= from.leaves[node].capacity; ++node) at -= from.leaves[node].capacity;
    drawn.push_back(node);
  }
  return drawn;
}

}  // namespace lethe
