#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lethe {

/// How early two tokens join. Lower ranks join first. A slot is eight bytes: of large vocabularies
/// more lies in the cache.
class merge_table {
  static constexpr int id_bits = 21, rank_bits = 64 - 2 * id_bits;
  static constexpr size_t together = 4;  // slots of a bucket: looked at without a branch

 public:
  static constexpr uint32_t never = (1u << rank_bits) - 1;
  static constexpr uint32_t id_max = (1u << id_bits) - 2;
  explicit merge_table(size_t merges = 0);

  /// There must be room: no more than `merges` pairs.
  void set(uint32_t left, uint32_t right, uint32_t rank) noexcept;
  /// `never` if the pair doesn't join.
  uint32_t rank(uint32_t left, uint32_t right) const noexcept {
    uint64_t k = key(left, right), h = hash(k), bits = sign(h);
    if ((signs_[h >> signs_shift_] & bits) != bits) return never;
    for (size_t b = bucket(h);; b = (b + together) & (slots_.size() - 1)) {
      uint32_t found = never;
      for (size_t i = b; i < b + together; i++)
        found = slots_[i] >> rank_bits == k ? uint32_t(slots_[i]) & never : found;
      if (found != never || slots_[b + together - 1] == nothing) return found;
    }
  }

 private:
  static constexpr uint64_t nothing = UINT64_MAX;
  static uint64_t key(uint32_t left, uint32_t right) noexcept {
    return uint64_t(left) << id_bits | right;
  }
  static uint64_t hash(uint64_t k) noexcept { return k * 0x9E3779B97F4A7C15; }
  uint64_t sign(uint64_t h) const noexcept {
    return uint64_t{1} << (h >> (signs_shift_ - 6) & 63) | uint64_t{1}
                                                               << (h >> (signs_shift_ - 12) & 63);
  }
  /// Where a pair's bucket begins. One fills from its beginning; what it has no room for is in the
  /// next one.
  size_t bucket(uint64_t h) const noexcept { return h >> shift_ & ~(together - 1); }
  std::vector<uint64_t> slots_;  // key, rank; a power of two, at most half full
  // Two bits of a word for each pair: most that don't join are known by them, from the second
  // cache, where the slots of a large vocabulary lie beyond it.
  std::vector<uint64_t> signs_;
  int shift_, signs_shift_;
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
