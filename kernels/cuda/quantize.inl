#pragma once

#include "kernels/cuda/cuda_row.hpp"
#include "kernels/cuda/simt.hpp"

namespace lethe::device {

LETHE_BODY int32_t quantized(float value, float inverse) {
  float t = value * inverse;
  if (t != t) t = 0.0f;
  return round_to_int(less_of(greater_of(t, -127.0f), 127.0f));
}

/// A warp's block of 32 numbers, one a thread, which is number `at` of rows back to back.
template <class Block>
LETHE_BODY void put_quantized(Block& block, float value, size_t at, const device_activations& to) {
  float largest = value != value ? from_bits(0x7f800000) : absolute(value);
  for (uint32_t m = 16; m > 0; m /= 2) {
    largest = greater_of(largest, block.shuffle_xor(largest, m));
  }
  bool zeros = largest < 0x1p-100f;  // also keeps 127 / largest finite
  int32_t number = quantized(value, zeros ? 0.0f : 127.0f / largest), sum = number;
  for (uint32_t m = 8; m > 0; m /= 2) sum += block.shuffle_xor(sum, m);
  to.q[at] = int8_t(number);
  if (at % 16 == 0) to.sums[at / 16] = int16_t(sum);
  if (at % 32 == 0) to.scales[at / 32] = zeros ? 0.0f : largest / 127.0f;
}

struct quantize {
  static constexpr uint32_t threads = 256;
  const float* x;
  size_t stride;
  uint32_t rows, cols;
  device_activations to;

  launch_shape shape() const { return {blocks_for(cols, threads), rows}; }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t column = block.x() * threads + block.thread();
    if (column >= cols) return;
    put_quantized(block, x[block.y() * stride + column], size_t{block.y()} * cols + column, to);
  }
};

}  // namespace lethe::device
