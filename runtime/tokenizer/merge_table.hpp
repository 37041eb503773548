#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace lethe
