#pragma once

#include "kernels/cuda/simt.hpp"

// What needs no other thread: one number, or one pair, per thread.

namespace lethe::device {

constexpr uint32_t elementwise_threads = 256;

/// Rotates pairs (i, i + rotary/2).
struct rope {
  static constexpr uint32_t threads = elementwise_threads;
  float* rows_begin;
  size_t stride;
  uint32_t rows, heads, head_dim, rotary;
  const float *cosines, *sines;

  launch_shape shape() const { return {blocks_for(size_t{heads} * (rotary / 2), threads), rows}; }
  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t half = rotary / 2, at = block.x() * threads + block.thread();
    if (at >= heads * half) return;
    uint32_t i = at % half;
    size_t angle = size_t{block.y()} * half + i;
    float* left = rows_begin + block.y() * stride + size_t{at / half} * head_dim + i;
    float a = *left, b = left[half], c = cosines[angle], s = sines[angle];
    *left = a * c - b * s;
    left[half] = fused(b, c, a * s);
  }
};

struct silu_multiply {
  static constexpr uint32_t threads = elementwise_threads;
  const float *gate, *up;
  float* y;
  size_t n;

  launch_shape shape() const { return {blocks_for(n, threads)}; }
  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    size_t i = size_t{block.x()} * threads + block.thread();
    if (i >= n) return;
    float g = gate[i], e = exp_of_negative(0.0f - absolute(g));
    y[i] = g * ((g < 0.0f ? e : 1.0f) / (1.0f + e)) * up[i];
  }
};

/// y[r] += x for each row; one row is `add`.
struct add_to_rows {
  static constexpr uint32_t threads = elementwise_threads;
  const float* x;
  float* y;
  size_t stride;
  uint32_t rows;
  size_t cols;

  launch_shape shape() const { return {blocks_for(cols, threads), rows}; }
  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    size_t i = size_t{block.x()} * threads + block.thread();
    if (i >= cols) return;
    float* to = y + block.y() * stride + i;
    *to = *to + x[i];
  }
};

/// Zeros, 16 bytes a thread.
struct wipe {
  static constexpr uint32_t threads = elementwise_threads;
  four_words* begin;
  size_t count;

  launch_shape shape() const { return {blocks_for(count, threads)}; }
  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    size_t i = size_t{block.x()} * threads + block.thread();
    if (i < count) begin[i] = four_words{};
  }
};

}  // namespace lethe::device
