#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lethe {

/// Which two tokens join, how early, and into what. Lower ranks join first.
class merge_table {
 public:
  struct merge {
    uint32_t rank = UINT32_MAX, joined = 0;
    explicit operator bool() const noexcept { return rank != UINT32_MAX; }
  };
  explicit merge_table(size_t merges = 0);

  /// There must be room: no more than `merges` pairs.
  void set(uint32_t left, uint32_t right, merge m) noexcept;
  merge find(uint32_t left, uint32_t right) const noexcept {
    const slot& s = slots_[place(key(left, right))];
    return s.what;
  }

 private:
  struct slot {
    uint64_t key = UINT64_MAX;
    merge what = {};
  };
  static uint64_t key(uint32_t left, uint32_t right) noexcept {
    return uint64_t(left) << 32 | right;
  }
  size_t place(uint64_t k) const noexcept {
    size_t i = (k * 0x9E3779B97F4A7C15) >> shift_;
    while (slots_[i].key != k && slots_[i].key != UINT64_MAX) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  std::vector<slot> slots_;  // a power of two, at most half full
  int shift_;
};

/// Pairs that may ever stand inside of one token: a text falls apart wherever none does, and
/// what is joined on one side does not touch the other.
class neighbours {
 public:
  neighbours() = default;  // any two
  explicit neighbours(std::vector<std::pair<uint32_t, uint32_t>> pairs);
  bool may_join(uint32_t left, uint32_t right) const noexcept {
    return !known_ || bool(pairs_.find(left, right));
  }

 private:
  merge_table pairs_;
  bool known_ = false;
};

}  // namespace lethe
