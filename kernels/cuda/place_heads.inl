#pragma once

#include "kernels/cuda/kv_rows.inl"

namespace lethe::device {

/// A warp for each row of a head.
template <kv_type K>
struct place_heads {
  static constexpr uint32_t threads = 256, warps = threads / warp_lanes;
  device_heads of;

  launch_shape shape() const {
    size_t items = size_t{of.tokens_max} * (of.heads + 2 * of.kv_heads);
    return {blocks_for(items, warps), of.run_count};
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    token_run run = of.runs[block.y()];
    uint32_t item = block.x() * warps + block.thread() / warp_lanes;
    uint32_t token = item / (of.heads + 2 * of.kv_heads),
             head = item % (of.heads + 2 * of.kv_heads);
    if (token >= run.tokens) return;
    uint32_t row = run.row + token, position = run.position + token;
    if (head < of.heads) {
      float* q = of.q + row * of.q_stride + size_t{head} * of.kv.head_dim;
      turn(block, q, head_row(block, *this, q, of.q_gain, row, of.rotary));
      return;
    }
    head -= of.heads;
    bool is_key = head < of.kv_heads;
    if (!is_key) head -= of.kv_heads;
    const float* from = (is_key ? of.k : of.v) + row * of.kv_stride + size_t{head} * of.kv.head_dim;
    head_row numbers(block, *this, from, is_key ? of.k_gain : nullptr, row, is_key ? of.rotary : 0);
    kv_place place(of.kv, is_key ? of.kv.key_offset : of.kv.value_offset, head, run.first_page);
    put(block, numbers, place.head + place.offset(position));
  }

 private:
  template <class Block>
  LETHE_BODY static uint32_t lane_of(Block& block) {
    return block.thread() % warp_lanes;
  }

  /// A row, normed and turned where its numbers are read.
  struct head_row {
    const float *from, *gain;
    float inverse = 1.0f;
    uint32_t half;  // pairs (i, i + half) are turned
    const float *cosines, *sines;

    template <class Block>
    LETHE_BODY head_row(Block& block, const place_heads& all, const float* numbers,
                        const float* scales, uint32_t row, uint32_t rotary)
        : from(numbers),
          gain(scales),
          half(rotary / 2),
          cosines(all.of.cosines + size_t{row} * half),
          sines(all.of.sines + size_t{row} * half) {
      if (gain == nullptr) return;
      uint32_t head_dim = all.of.kv.head_dim;
      float mean = sum_of_squares(block, from, head_dim) / float(head_dim);
      inverse = 1.0f / square_root(mean + all.of.eps);
    }
    LETHE_BODY float normed(uint32_t d) const {
      return gain == nullptr ? from[d] : from[d] * inverse * gain[d];
    }
    LETHE_BODY float at(uint32_t d) const {
      if (d >= 2 * half) return normed(d);
      uint32_t i = d < half ? d : d - half;
      float a = normed(i), b = normed(i + half), c = cosines[i], s = sines[i];
      return d < half ? a * c - b * s : fused(b, c, a * s);
    }
  };

  /// In rms_norm's order, by a warp: column c in sum c % 64, of which a lane has two.
  template <class Block>
  LETHE_BODY static float sum_of_squares(Block& block, const float* from, uint32_t cols) {
    float sums[2] = {};
    for (uint32_t i = lane_of(block); i < cols; i += 64) {
      sums[0] = fused(from[i], from[i], sums[0]);
      if (i + 32 < cols) sums[1] = fused(from[i + 32], from[i + 32], sums[1]);
    }
    for (float& sum : sums) sum = sum + block.shuffle_xor(sum, 16);
    float all = sums[0] + sums[1];
    for (uint32_t m = 8; m > 0; m /= 2) all = all + block.shuffle_xor(all, m);
    return all;
  }

  /// Each pair by one lane, which has read both before it writes either.
  template <class Block>
  LETHE_BODY void turn(Block& block, float* q, const head_row& numbers) const {
    for (uint32_t i = lane_of(block); i < numbers.half; i += warp_lanes) {
      float left = numbers.at(i), right = numbers.at(i + numbers.half);
      q[i] = left;
      q[i + numbers.half] = right;
    }
    if (numbers.gain == nullptr) return;
    for (uint32_t d = 2 * numbers.half + lane_of(block); d < of.kv.head_dim; d += warp_lanes) {
      q[d] = numbers.at(d);
    }
  }

  template <class Block>
  LETHE_BODY void put(Block& block, const head_row& numbers, uint8_t* row) const {
    if constexpr (K == kv_type::int8) {
      put_int8(block, numbers, row);
    } else {
      for (uint32_t d = lane_of(block); d < of.kv.head_dim; d += warp_lanes) {
        float v = numbers.at(d);
        if constexpr (K == kv_type::f32) reinterpret_cast<float*>(row)[d] = v;
        if constexpr (K == kv_type::bf16) reinterpret_cast<uint16_t*>(row)[d] = to_bf16(v);
      }
    }
  }
  /// q = round(x * 127 / amax), scale = amax / 127; q is 0 where 127 / amax is infinite, since what
  /// does not fit an int becomes INT32_MIN, whose lowest byte is 0.
  template <class Block>
  LETHE_BODY void put_int8(Block& block, const head_row& numbers, uint8_t* row) const {
    uint32_t lane = lane_of(block), padded = kv_row_bytes(K, of.kv.head_dim) - 4;
    float amax = 0.0f;
    for (uint32_t d = lane; d < of.kv.head_dim; d += warp_lanes) {
      amax = greater_of(absolute(numbers.at(d)), amax);
    }
    for (uint32_t m = warp_lanes / 2; m > 0; m /= 2) {
      amax = greater_of(block.shuffle_xor(amax, m), amax);
    }
    float inverse = 127.0f / amax;
    for (uint32_t d = lane; d < padded; d += warp_lanes) {
      bool real = d < of.kv.head_dim;
      row[d] = real ? uint8_t(round_to_int(numbers.at(d) * inverse)) : uint8_t(0);
    }
    if (lane == 0) *reinterpret_cast<float*>(row + padded) = amax / 127.0f;
  }
};

}  // namespace lethe::device
