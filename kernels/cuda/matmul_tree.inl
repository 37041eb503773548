#pragma once

#include "kernels/cuda/matmul_join.inl"

namespace lethe::device {

/// A lane's sums of 16 x 8 tiles, whose segments come one after the other: each joins what is then
/// whole of ((0+1)+(2+3))+((4+5)+(6+7)); who has nobody beside it goes up alone. What waits for its
/// right side is a pair and a segment in shared words from 0 on, [pair, segment][sum][thread], and
/// a half where the product goes.
template <uint32_t tiles, uint32_t threads>
struct waiting_sums {
  static constexpr uint32_t count = 4 * tiles, words = 2 * count * threads;

  /// Segment s is summed. for_outputs(f): f(i, row, column) of each sum i that is an output.
  template <class Block, class Outputs>
  LETHE_BODY static void finish(Block& block, const product_part& part, uint32_t s,
                                lane_sums<float> (&sums)[tiles], Outputs for_outputs,
                                const device_output& to) {
    const uint32_t begin = part.segment_begin, end = part.segment_end;
    const uint32_t pair = s / 2, half = s / 4;
    bool joins = s % 2 == 1 && s > begin, waits = s % 2 == 0 && s + 1 < end;
    wait_in_words(block, count, joins, waits, sums);
    if (waits) return;
    joins = pair % 2 == 1 && 2 * pair > begin, waits = pair % 2 == 0 && 2 * pair + 2 < end;
    wait_in_words(block, 0, joins, waits, sums);
    if (waits) return;
    // A half that waits is where the product goes.
    joins = half == 1 && begin < 4, waits = half == 0 && 4 < end;
    for_outputs([&](uint32_t i, uint32_t row, uint32_t col) {
      float& there = to.y[row * to.stride + col];
      float sum = joins ? there + sums[i / 4].c[i % 4] : sums[i / 4].c[i % 4];
      if (waits) {
        there = sum;
      } else {
        put_output(to, row, col, sum);
      }
    });
  }

 private:
  template <class Block>
  LETHE_BODY static void wait_in_words(Block& block, uint32_t first, bool joins, bool waits,
                                       lane_sums<float> (&sums)[tiles]) {
    LETHE_UNROLL
    for (uint32_t i = 0; i < count; i++) {
      float& sum = sums[i / 4].c[i % 4];
      uint32_t at = (first + i) * threads + block.thread();
      if (joins) sum = block.get(at) + sum;
      if (waits) block.put(at, sum);
    }
  }
};

}  // namespace lethe::device
