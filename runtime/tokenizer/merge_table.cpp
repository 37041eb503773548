#include "runtime/tokenizer/merge_table.hpp"

#include <algorithm>
#include <bit>

namespace lethe {

merge_table::merge_table(size_t merges)
    : slots_(std::bit_ceil(std::max(merges * 2 + 2, together)), nothing),
      signs_(std::bit_ceil(merges / 16 + 2)),
      shift_(64 - std::countr_zero(slots_.size())),
      signs_shift_(64 - std::countr_zero(signs_.size())) {}

void merge_table::set(uint32_t left, uint32_t right, uint32_t rank) noexcept {
  uint64_t k = key(left, right), h = hash(k);
  size_t i = bucket(h);
  signs_[h >> signs_shift_] |= sign(h);
  while (slots_[i] >> rank_bits != k && slots_[i] != nothing) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = k << rank_bits | rank;
}

neighbours::neighbours(std::vector<std::pair<uint32_t, uint32_t>> pairs) : known_(true) {
  std::ranges::sort(pairs);
  auto twice = std::ranges::unique(pairs);
  pairs.erase(twice.begin(), twice.end());
  pairs_ = merge_table(pairs.size());
  low_.reset();
  for (auto [left, right] : pairs) {
    pairs_.set(left, right, 0);
    if ((left | right) < low) low_.set(left * low + right);
  }
}

}  // namespace lethe
