#pragma once

#include "kernels/cuda/matmul_join.inl"

namespace lethe::device {

/// Which panels (times x) and rows (times y) a block of a large tile takes. Blocks that run at the
/// same time are sixteen by as many as there are, so that what they read fits L2.
struct tile_place {
  uint32_t x, y;
  template <class Block>
  LETHE_BODY tile_place(Block& block, const product_place& p, uint32_t panels, uint32_t rows) {
    constexpr uint32_t most = 16;
    const product_part& part = p.part;
    const uint32_t all = part.row_end - part.row_begin / panel_rows * panel_rows;
    const uint32_t wide = blocks_for(all, panel_rows * panels), high = blocks_for(p.rows, rows);
    const uint32_t at = block.y() * wide + block.x(), band = at / (most * wide) * most;
    const uint32_t of_band = least_of(most, high - band);
    x = (at - band * wide) / of_band, y = band + (at - band * wide) % of_band;
  }
};

/// Where a sum goes, behind the block's first row; of one that is no output, a place that can be
/// read.
struct sum_place {
  uint32_t row, col;
  bool real;
};

/// A lane's sums of 16 x 8 tiles, whose segments come one after the other: each joins what is then
/// whole of ((0+1)+(2+3))+((4+5)+(6+7)); who has nobody beside it goes up alone. What waits for its
/// right side is a pair in shared words from 0 on, [sum][thread], a segment in registers, or behind
/// the pair where there are too few, and a half where the product goes.
template <uint32_t tiles, uint32_t threads, bool in_registers>
class waiting_sums {
 public:
  static constexpr uint32_t count = 4 * tiles, words = (in_registers ? 1 : 2) * count * threads;

  /// Segment s is summed. place_of(i): the sum_place of sum i; the block's rows begin with `row`.
  template <class Block, class Places>
  LETHE_BODY void finish(Block& block, const product_part& part, uint32_t s,
                         lane_sums<float> (&sums)[tiles], Places place_of, const device_output& to,
                         uint32_t row) {
    const uint32_t begin = part.segment_begin, end = part.segment_end;
    const uint32_t pair = s / 2, half = s / 4;
    bool joins = s % 2 == 1 && s > begin, waits = s % 2 == 0 && s + 1 < end;
    if constexpr (in_registers) {
      wait_in_registers(joins, waits, sums);
    } else {
      wait_in_words(block, count, joins, waits, sums);
    }
    if (waits) return;
    joins = pair % 2 == 1 && 2 * pair > begin, waits = pair % 2 == 0 && 2 * pair + 2 < end;
    wait_in_words(block, 0, joins, waits, sums);
    if (waits) return;
    joins = half == 1 && begin < 4, waits = half == 0 && 4 < end;
    LETHE_UNROLL
    for (uint32_t i = 0; i < count; i += together) put(sums, i, joins, waits, place_of, to, row);
  }

 private:
  static constexpr uint32_t together = 8;

  /// Some sums from `first` on. What they meet is read for all of them before it is used.
  template <class Places>
  LETHE_BODY static void put(const lane_sums<float> (&sums)[tiles], uint32_t first, bool joins,
                             bool waits, Places place_of, const device_output& to, uint32_t row) {
    float* const y = to.y + row * to.stride;
    const float* const onto = to.onto == nullptr ? nullptr : to.onto + row * to.stride;
    float sum[together];
    uint32_t at[together];
    uint32_t col[together];
    bool real[together];
    LETHE_UNROLL
    for (uint32_t i = 0; i < together; i++) {
      const sum_place p = place_of(first + i);
      sum[i] = sums[(first + i) / 4].c[(first + i) % 4];
      at[i] = p.row * uint32_t(to.stride) + p.col, col[i] = p.col, real[i] = p.real;
    }
    // A half that waits is where the product goes.
    if (joins) meet(sum, [&](uint32_t i) { return y[at[i]]; });
    if (!waits && to.bias != nullptr) meet(sum, [&](uint32_t i) { return to.bias[col[i]]; });
    if (!waits && onto != nullptr) meet(sum, [&](uint32_t i) { return onto[at[i]]; });
    LETHE_UNROLL
    for (uint32_t i = 0; i < together; i++) {
      if (real[i]) y[at[i]] = sum[i];
    }
  }
  template <class Other>
  LETHE_BODY static void meet(float (&sum)[together], Other other_of) {
    float other[together];
    LETHE_UNROLL
    for (uint32_t i = 0; i < together; i++) other[i] = other_of(i);
    LETHE_UNROLL
    for (uint32_t i = 0; i < together; i++) sum[i] = other[i] + sum[i];
  }

  lane_sums<float> segment_[in_registers ? tiles : 1] = {};

  LETHE_BODY void wait_in_registers(bool joins, bool waits, lane_sums<float> (&sums)[tiles]) {
    LETHE_UNROLL
    for (uint32_t i = 0; i < count; i++) {
      float &sum = sums[i / 4].c[i % 4], &other = segment_[i / 4].c[i % 4];
      if (joins) sum = other + sum;
      if (waits) other = sum;
    }
  }
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
