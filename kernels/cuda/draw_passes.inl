#pragma once

#include "kernels/cuda/cuda_row.hpp"
#include "kernels/cuda/simt.hpp"

namespace lethe::device {

/// The threads of a row's draw, and its shared words: one of each warp, what one thread tells all,
/// two of each block of places.
struct draw_layout {
  static constexpr uint32_t threads = 1024, warps = threads / warp_lanes, lanes = 16;
  static constexpr uint32_t places_each = draw_block / lanes, at_once = threads / lanes;
  static constexpr uint32_t of_warps = 0, told = warps, sums = told + 2;
  static_assert(warps == warp_lanes);

  static constexpr uint32_t words_of_blocks(size_t vocab) {
    size_t blocks = draw_blocks(vocab);
    return uint32_t(blocks < draw_block ? draw_block : blocks);
  }
  static constexpr uint32_t shared_words(size_t vocab) { return sums + 2 * words_of_blocks(vocab); }
};

/// What the threads find out together: passes over places, in the order of additions that the CPU's
/// have. Sixteen threads are the lanes of a block of places. Every call is made by all threads
/// alike, and what it returns is all threads'.
template <class Block>
struct draw_passes : draw_layout {
  Block& block;
  uint32_t some;        // shared words like `sums`, for what is soon forgotten
  uint32_t blocks = 0;  // of places

  LETHE_BODY draw_passes(Block& b, size_t vocab) : block(b), some(sums + words_of_blocks(vocab)) {}

  LETHE_BODY uint32_t lane() const { return block.thread() % lanes; }

  LETHE_BODY void put(uint32_t i, float v) { block.put(i, v); }
  LETHE_BODY void put(uint32_t i, uint32_t v) { block.put_word(i, v); }
  LETHE_BODY void get(uint32_t i, float& v) { v = block.get(i); }
  LETHE_BODY void get(uint32_t i, uint32_t& v) { v = block.get_word(i); }

  /// f of all threads' v, in no order.
  template <class T, class F>
  LETHE_BODY T across(T v, F f) {
    for (uint32_t m = warp_lanes / 2; m > 0; m /= 2) v = f(v, block.shuffle_xor(v, m));
    block.barrier();
    if (block.thread() % warp_lanes == 0) put(of_warps + block.thread() / warp_lanes, v);
    block.barrier();
    get(of_warps + block.thread() % warp_lanes, v);
    for (uint32_t m = warp_lanes / 2; m > 0; m /= 2) v = f(v, block.shuffle_xor(v, m));
    return v;
  }
  LETHE_BODY uint32_t added(uint32_t v) {
    return across(v, [](uint32_t a, uint32_t b) { return a + b; });
  }
  LETHE_BODY uint32_t least(uint32_t v) { return across(v, least_of); }
  LETHE_BODY float greatest(float v) { return across(v, greater_of); }

  /// f(b) for the blocks of places, by their lanes; whole warps come to it, also with no block.
  template <class F>
  LETHE_BODY void for_blocks(F f) {
    for (uint32_t b = block.thread() / lanes; b - block.thread() / lanes < blocks; b += at_once)
      f(b);
  }

  /// For each block the sum of f(place), to shared words from `to` on.
  template <class F>
  LETHE_BODY void add_blocks(uint32_t to, F f) {
    for_blocks([&](uint32_t b) {
      float sum = 0.0f;
      for (uint32_t i = 0; b < blocks && i < places_each; i++)
        sum = sum + f(b * uint32_t(draw_block) + i * lanes + lane());
      for (uint32_t m = lanes / 2; m > 0; m /= 2) sum = sum + block.shuffle_xor(sum, m);
      if (lane() == 0 && b < blocks) block.put(to + b, sum);
    });
  }
  /// The sums at `from`, added in order.
  LETHE_BODY double total_of(uint32_t from) {
    block.barrier();
    if (block.thread() == 0) {
      double total = 0;
      for (uint32_t b = 0; b < blocks; b++) total += double(block.get(from + b));
      tell(total);
    }
    block.barrier();
    return told_double();
  }

  LETHE_BODY void tell(double v) {
    block.put_word(told, low_word(v));
    block.put_word(told + 1, high_word(v));
  }
  LETHE_BODY double told_double() const {
    return from_words(block.get_word(told), block.get_word(told + 1));
  }

  /// The largest f(place) of each block, to shared words from `to` on.
  template <class F>
  LETHE_BODY void maxima(uint32_t to, F f) {
    for_blocks([&](uint32_t b) {
      float most = -from_bits(0x7f800000);
      for (uint32_t i = 0; b < blocks && i < places_each; i++)
        most = greater_of(f(b * uint32_t(draw_block) + i * lanes + lane()), most);
      for (uint32_t m = lanes / 2; m > 0; m /= 2)
        most = greater_of(most, block.shuffle_xor(most, m));
      if (lane() == 0 && b < blocks) block.put(to + b, most);
    });
    block.barrier();
  }

  /// Places where f says so, in order; how many there are.
  template <class F>
  LETHE_BODY uint32_t find(uint32_t* places, F f) {
    for_blocks([&](uint32_t b) {
      uint32_t all = popcount(mine(b, f));
      for (uint32_t m = lanes / 2; m > 0; m /= 2) all += block.shuffle_xor(all, m);
      if (lane() == 0 && b < blocks) block.put_word(some + b, all);
    });
    block.barrier();
    if (block.thread() == 0) block.put_word(told, each_begin());
    block.barrier();
    uint32_t found = block.get_word(told);
    for_blocks([&](uint32_t b) {
      uint32_t bits = mine(b, f), at = before_me(popcount(bits));
      if (b < blocks) at += block.get_word(some + b);
      for (; bits != 0; bits &= bits - 1)
        places[at++] = b * uint32_t(draw_block) + lane() * places_each + lowest_bit(bits);
    });
    block.barrier();
    return found;
  }

  /// Puts list[0, n) in the order that `first` says, which holds of no two both ways: a bitonic
  /// sort whose comparisons all point one way, so that n need be no power of two.
  template <class F>
  LETHE_BODY void sort(uint32_t* list, uint32_t n, F first) {
    uint32_t wrong = 0;
    for (uint32_t i = block.thread() + 1; i < n; i += threads) wrong |= first(list[i], list[i - 1]);
    if (added(wrong) == 0) return;
    for (uint32_t size = 2; size / 2 < n; size *= 2) {
      step(list, n, first, size, size - 1);
      for (uint32_t part = size / 2; part > 1; part /= 2) step(list, n, first, part, part / 2);
    }
  }

 private:
  /// Of sixteen places in a row, one a bit.
  template <class F>
  LETHE_BODY uint32_t mine(uint32_t b, F f) {
    uint32_t bits = 0;
    for (uint32_t i = 0; b < blocks && i < places_each; i++)
      bits |= uint32_t(f(b * uint32_t(draw_block) + lane() * places_each + i)) << i;
    return bits;
  }
  /// The sum of v of the lanes before this one.
  LETHE_BODY uint32_t before_me(uint32_t v) {
    uint32_t before = 0, all = v;
    for (uint32_t m = 1; m < lanes; m *= 2) {
      uint32_t others = block.shuffle_xor(all, m);
      if ((lane() & m) != 0) before += others;
      all += others;
    }
    return before;
  }
  /// Instead of how many each block has, how many those before it have; returns how many all have.
  LETHE_BODY uint32_t each_begin() {
    uint32_t begin = 0;
    for (uint32_t b = 0; b < blocks; b++) {
      uint32_t here = block.get_word(some + b);
      block.put_word(some + b, begin);
      begin += here;
    }
    return begin;
  }
  /// Compares each i in the first half of its `size` with i ^ mask.
  template <class F>
  LETHE_BODY void step(uint32_t* list, uint32_t n, F first, uint32_t size, uint32_t mask) {
    uint32_t half = size / 2;
    for (uint32_t pair = block.thread(); pair / half * size < n; pair += threads) {
      uint32_t i = pair / half * size + pair % half, j = i ^ mask;
      if (j >= n || !first(list[j], list[i])) continue;
      uint32_t later = list[i];
      list[i] = list[j];
      list[j] = later;
    }
    block.barrier();
  }
};

}  // namespace lethe::device
