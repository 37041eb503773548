#pragma once

#include "kernels/cuda/quantize.inl"

// One number per thread, or as many as a word of memory takes.

namespace lethe::device {

constexpr uint32_t elementwise_threads = 256;

struct silu_multiply {
  static constexpr uint32_t threads = elementwise_threads;
  const float *gate, *up;
  device_activations to;
  size_t n;

  launch_shape shape() const { return {blocks_for(n, threads)}; }
  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    size_t i = size_t{block.x()} * threads + block.thread();
    if (i >= n) return;
    float g = gate[i], e = two_to(absolute(g) * -log2_e);
    float value = g * ((g < 0.0f ? e : 1.0f) / (1.0f + e)) * up[i];
    if (to.f != nullptr) to.f[i] = value;
    if (to.q != nullptr) put_quantized(block, value, i, to);
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
