#pragma once

#include "kernels/cuda/matmul_join.inl"

namespace lethe::device {

/// A lane's sums of 16 x 8 tiles, whose segments come one after the other: each joins what is then
/// whole of ((0+1)+(2+3))+((4+5)+(6+7)); who has nobody beside it goes up alone. What waits for its
/// right side is a segment in the lane and, where registers end, in shared words from 0 on
/// ([sum][thread], of which there are `room`), a pair in shared words, a half where the product
/// goes.
template <uint32_t tiles, uint32_t threads, uint32_t room>
struct waiting_sums {
  static constexpr uint32_t count = 4 * tiles, free = room / threads - count;
  static constexpr uint32_t in_words = free < 2 * tiles ? free : 2 * tiles;
  static constexpr uint32_t in_lane = count - in_words;
  static constexpr uint32_t words = (count + in_words) * threads;
  float parked[in_lane];

  /// Segment s is summed. for_outputs(f): f(i, row, column) of each sum i that is an output.
  template <class Block, class Sums, class Outputs>
  LETHE_BODY void finish(Block& block, const product_part& part, uint32_t s, Sums& sums,
                         Outputs for_outputs, const device_output& to) {
    const uint32_t begin = part.segment_begin, end = part.segment_end;
    const uint32_t pair = s / 2, half = s / 4;
    bool joins = s % 2 == 1 && s > begin, waits = s % 2 == 0 && s + 1 < end;
    for (uint32_t i = 0; i < in_lane; i++) {
      float& sum = sums[i / 4].c[i % 4];
      if (joins) sum = parked[i] + sum;
      if (waits) parked[i] = sum;
    }
    for (uint32_t i = in_lane; i < count; i++) {
      wait_in_words(block, count + i - in_lane, joins, waits, sums[i / 4].c[i % 4]);
    }
    if (waits) return;
    for (float& p : parked) p = 0.0f;  // no register is held for what is not read again
    joins = pair % 2 == 1 && 2 * pair > begin, waits = pair % 2 == 0 && 2 * pair + 2 < end;
    for (uint32_t i = 0; i < count; i++) {
      wait_in_words(block, i, joins, waits, sums[i / 4].c[i % 4]);
    }
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
  LETHE_BODY static void wait_in_words(Block& block, uint32_t i, bool joins, bool waits,
                                       float& sum) {
    if (joins) sum = block.get(i * threads + block.thread()) + sum;
    if (waits) block.put(i * threads + block.thread(), sum);
  }
};

}  // namespace lethe::device
