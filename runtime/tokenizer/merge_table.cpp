#include "runtime/tokenizer/merge_table.hpp"

#include <algorithm>
#include <bit>

namespace lethe {

merge_table::merge_table(size_t merges)
    : slots_(std::bit_ceil(merges * 2 + 2)), shift_(64 - std::countr_zero(slots_.size())) {}

void merge_table::set(uint32_t left, uint32_t right, merge m) noexcept {
  uint64_t k = key(left, right);
  slots_[place(k)] = {k, m};
}

neighbours::neighbours(std::vector<std::pair<uint32_t, uint32_t>> pairs) : known_(true) {
  std::ranges::sort(pairs);
  auto twice = std::ranges::unique(pairs);
  pairs.erase(twice.begin(), twice.end());
  pairs_ = merge_table(pairs.size());
  for (auto [left, right] : pairs) pairs_.set(left, right, {0, 0});
}

}  // namespace lethe
