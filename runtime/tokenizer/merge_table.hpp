#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lethe {

/// How early two tokens join. Lower ranks join first. All pairs of a left token lie together: what
/// a text is made of touches few lines of memory, and few pages.
class merge_table {
  static constexpr int id_bits = 21, rank_bits = 64 - 2 * id_bits;
  static constexpr size_t together = 4;  // slots of a bucket: looked at without a branch

 public:
  struct merge {
    uint32_t left, right, rank;
  };
  static constexpr uint32_t never = (1u << rank_bits) - 1;
  static constexpr uint32_t id_max = (1u << id_bits) - 2;
  merge_table() : merge_table(std::span<const merge>{}) {}
  /// Of two merges of the same pair the later one counts.
  explicit merge_table(std::span<const merge> merges);

  /// `never` if the pair doesn't join.
  uint32_t rank(uint32_t left, uint32_t right) const noexcept {
    uint64_t k = key(left, right), h = hash(k), bits = sign(h);
    if ((signs_[h >> signs_shift_] & bits) != bits || left >= rows_.size()) return never;
    row r = rows_[left];
    for (uint32_t b = bucket(h), tries = 0;; b++) {
      const uint64_t* slots = slots_.data() + r.begin + together * (b & r.mask);
      uint32_t found = never;
      for (size_t i = 0; i < together; i++)
        found = slots[i] >> rank_bits == k ? uint32_t(slots[i]) & never : found;
      if (found != never || slots[together - 1] == nothing || tries++ == r.mask) return found;
    }
  }

 private:
  /// Of a left token: buckets, a power of two, or all that it has in one, of which a part may be
  /// the next row's.
  struct row {
    uint32_t begin = 0, mask = 0;
  };
  static constexpr uint64_t nothing = UINT64_MAX;
  static uint64_t key(uint32_t left, uint32_t right) noexcept {
    return uint64_t(left) << id_bits | right;
  }
  static uint64_t hash(uint64_t k) noexcept { return k * 0x9E3779B97F4A7C15; }
  static uint32_t bucket(uint64_t h) noexcept { return uint32_t(h >> 32); }
  uint64_t sign(uint64_t h) const noexcept {
    return uint64_t{1} << (h >> (signs_shift_ - 6) & 63) | uint64_t{1}
                                                               << (h >> (signs_shift_ - 12) & 63);
  }
  void place(row r, uint64_t k, uint32_t rank) noexcept;
  std::vector<row> rows_;        // by left token
  std::vector<uint64_t> slots_;  // key, rank
  // Two bits of a word for each pair: most that don't join are known by them, from the second
  // cache, where the slots of a large vocabulary lie beyond it.
  std::vector<uint64_t> signs_;
  int signs_shift_;
};

/// Pairs that may ever stand inside of one token: a text falls apart wherever none does, and
/// what is joined on one side does not touch the other.
class neighbours {
 public:
  neighbours() = default;  // any two
  explicit neighbours(std::vector<std::pair<uint32_t, uint32_t>> pairs);
  bool may_join(uint32_t left, uint32_t right) const noexcept {
    if ((left | right) < low) return low_[left * low + right];
    return !known_ || pairs_.rank(left, right) == 0;
  }

 private:
  static constexpr uint32_t low = 256;  // a table of most that a text has
  std::bitset<size_t{low}* low> low_ = std::bitset<size_t{low} * low>().set();
  merge_table pairs_;
  bool known_ = false;
};

}  // namespace lethe
