#pragma once

#include "kernels/cuda/simt.hpp"

namespace lethe::device {

/// Activations in blocks of 32, a warp each.
struct quantize {
  static constexpr uint32_t threads = 256;
  const float* x;
  size_t stride;
  uint32_t rows, cols;
  int8_t* q;
  float* scales;
  int16_t* sums;

  launch_shape shape() const { return {blocks_for(cols, threads), rows}; }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t column = block.x() * threads + block.thread();
    if (column >= cols) return;
    size_t at = size_t{block.y()} * cols + column;
    float value = x[block.y() * stride + column];
    float largest = value != value ? from_bits(0x7f800000) : absolute(value);
    for (uint32_t m = 16; m > 0; m /= 2) {
      largest = greater_of(largest, block.shuffle_xor(largest, m));
    }
    bool zeros = largest < 0x1p-100f;  // also keeps 127 / largest finite
    int32_t number = rounded(value, zeros ? 0.0f : 127.0f / largest), sum = number;
    for (uint32_t m = 8; m > 0; m /= 2) sum += block.shuffle_xor(sum, m);
    q[at] = int8_t(number);
    if (at % 16 == 0) sums[at / 16] = int16_t(sum);
    if (at % 32 == 0) scales[at / 32] = zeros ? 0.0f : largest / 127.0f;
  }

 private:
  LETHE_BODY static int32_t rounded(float value, float inverse) {
    float t = value * inverse;
    if (t != t) t = 0.0f;
    return round_to_int(less_of(greater_of(t, -127.0f), 127.0f));
  }
};

}  // namespace lethe::device
