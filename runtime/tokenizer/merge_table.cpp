#include "runtime/tokenizer/merge_table.hpp"

#include <algorithm>
#include <bit>

namespace lethe {

merge_table::merge_table(std::span<const merge> merges)
    : signs_(std::bit_ceil(merges.size() / 16 + 2)),
      signs_shift_(64 - std::countr_zero(signs_.size())) {
  std::vector<uint32_t> counts;
  for (const merge& m : merges) {
    if (m.left >= counts.size()) counts.resize(m.left + 1);
    counts[m.left]++;
  }
  rows_.resize(counts.size());
  uint32_t end = 0;
  for (size_t left = 0; left < counts.size(); left++) {
    uint32_t count = counts[left];
    bool one = count <= together;
    uint32_t buckets = one ? 1 : std::bit_ceil(count / 3 + 1);  // three quarters full at most
    rows_[left] = {end, buckets - 1};
    end += one ? count : buckets * together;
  }
  slots_.assign(end + together, nothing);  // a last row's bucket may begin at the end
  for (const merge& m : merges) place(rows_[m.left], key(m.left, m.right), m.rank);
}

void merge_table::place(row r, uint64_t k, uint32_t rank) noexcept {
  uint64_t h = hash(k);
  signs_[h >> signs_shift_] |= sign(h);
  size_t i = together * (bucket(h) & r.mask), size = together * (r.mask + 1);
  auto* slots = slots_.data() + r.begin;
  while (slots[i] >> rank_bits != k && slots[i] != nothing) i = (i + 1) & (size - 1);
  slots[i] = k << rank_bits | rank;
}

neighbours::neighbours(std::vector<std::pair<uint32_t, uint32_t>> pairs) : known_(true) {
  low_.reset();
  std::erase_if(pairs, [this](auto pair) {
    auto [left, right] = pair;
    if ((left | right) >= low) return false;
    low_.set(left * low + right);
    return true;
  });
  std::ranges::sort(pairs);
  auto twice = std::ranges::unique(pairs);
  pairs.erase(twice.begin(), twice.end());
  std::vector<merge_table::merge> all;
  for (auto [left, right] : pairs) all.push_back({left, right, 0});
  pairs_ = merge_table(all);
}

}  // namespace lethe
