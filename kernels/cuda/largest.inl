#pragma once

#include "kernels/cuda/simt.hpp"

namespace lethe::device {

/// The first of each row's largest logits, as the sampler's greedy choice: NaN counts as -inf, and
/// what is not allowed is not there. One must be allowed. A block a row.
struct largest {
  static constexpr uint32_t threads = 1024, warps = threads / warp_lanes;
  const float* logits;
  size_t stride;
  uint32_t rows, vocab;
  const uint64_t* allowed;  // a bit for each id, or null: all are
  uint32_t* ids;

  launch_shape shape() const { return {rows, 1, 2 * warps}; }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    found best = own(block, logits + block.x() * stride);
    best = of_warp(block, best);
    uint32_t t = block.thread();
    if (t % warp_lanes == 0) {
      block.put(t / warp_lanes, best.logit);
      block.put_word(warps + t / warp_lanes, best.id);
    }
    block.barrier();
    if (t >= warp_lanes) return;
    best = of_warp(block, {block.get(t), block.get_word(warps + t)});
    if (t == 0) ids[block.x()] = best.id;
  }

 private:
  static_assert(warps == warp_lanes);
  struct found {
    float logit;
    uint32_t id;
  };
  LETHE_BODY static found better(found a, found b) {
    bool first = a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
    return first ? a : b;
  }
  template <class Block>
  LETHE_BODY found own(Block& block, const float* row) const {
    float lowest = -from_bits(0x7f800000);
    found best{lowest, UINT32_MAX};
    for (uint32_t i = block.thread(); i < vocab; i += threads) {
      if (allowed && !(allowed[i / 64] >> i % 64 & 1)) continue;
      best = better(best, {greater_of(row[i], lowest), i});
    }
    return best;
  }
  template <class Block>
  LETHE_BODY static found of_warp(Block& block, found best) {
    for (uint32_t m = warp_lanes / 2; m > 0; m /= 2) {
      found other{block.shuffle_xor(best.logit, m), block.shuffle_xor(best.id, m)};
      best = better(best, other);
    }
    return best;
  }
};

}  // namespace lethe::device
