#pragma once

#include "kernels/cuda/quantize.inl"

namespace lethe::device {

/// One block a row. The CPU's four vectors of sums are 64 sums here, one a thread, column c in sum
/// c % 64; all threads fetch a stretch of the row, so that memory is asked for it at once.
struct rms_norm {
  static constexpr uint32_t threads = 256, sums = 64, stretch = 2048;
  const float* x;
  size_t x_stride;
  const float* gain;
  device_activations to;
  uint32_t rows, cols;
  float eps;

  launch_shape shape() const { return {rows, 1, stretch}; }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    const float* from = x + block.x() * x_stride;
    float inverse = 1.0f / square_root(sum_of_squares(block, from) / float(cols) + eps);
    for (uint32_t first = block.thread(); first < cols; first += stretch)
      put(block, from, inverse, first);
  }

 private:
  /// Everything is read before anything is written: a store may be to what the next load is from.
  template <class Block>
  LETHE_BODY void put(Block& block, const float* from, float inverse, uint32_t first) const {
    constexpr uint32_t each = stretch / threads;
    float normed[each];
    LETHE_UNROLL
    for (uint32_t i = 0; i < each; i++) {
      uint32_t col = first + i * threads;
      normed[i] = col < cols ? from[col] * inverse * gain[col] : 0.0f;
    }
    LETHE_UNROLL
    for (uint32_t i = 0; i < each; i++) {
      uint32_t col = first + i * threads;
      if (col >= cols) break;
      if (to.f != nullptr) to.f[block.x() * to.stride + col] = normed[i];
      if (to.q != nullptr) put_quantized(block, normed[i], size_t{block.x()} * cols + col, to);
    }
  }

  template <class Block>
  LETHE_BODY float sum_of_squares(Block& block, const float* from) const {
    float sum = 0.0f;
    for (uint32_t begin = 0; begin < cols; begin += stretch) {
      uint32_t count = least_of(stretch, cols - begin);
      for (uint32_t i = block.thread(); i < count; i += threads) block.put(i, from[begin + i]);
      block.barrier();
      for (uint32_t i = block.thread(); block.thread() < sums && i < count; i += sums) {
        float v = block.get(i);
        sum = fused(v, v, sum);
      }
      block.barrier();
    }
    if (block.thread() < sums) block.put(block.thread(), sum);
    block.barrier();
    return joined(block);
  }

  /// Vectors (0+1)+(2+3), then the lanes' tree; each thread for itself.
  template <class Block>
  LETHE_BODY float joined(Block& block) const {
    float lane[16];
    for (uint32_t i = 0; i < 16; i++) {
      lane[i] = (block.get(i) + block.get(16 + i)) + (block.get(32 + i) + block.get(48 + i));
    }
    for (uint32_t half = 8; half > 0; half /= 2) {
      for (uint32_t i = 0; i < half; i++) lane[i] = lane[i] + lane[i + half];
    }
    return lane[0];
  }
};

}  // namespace lethe::device
