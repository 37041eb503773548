#pragma once

#include "kernels/cpu/lanes_math.inl"
#include "kernels/cpu/vector_ops_kv.inl"

namespace lethe {
namespace {

/// Vector i adds to sum i % 4, the four as (0+1)+(2+3), then the lanes' tree.
inline float sum_of_squares(const float* x, uint32_t n) {
  lanes sum[4] = {zero(), zero(), zero(), zero()};
  for_vectors(n, [&](size_t i, auto get, auto) {
    lanes v = get(x + i);
    sum[i / 16 % 4] = fma(v, v, sum[i / 16 % 4]);
  });
  return sum_of(add(add(sum[0], sum[1]), add(sum[2], sum[3])));
}

void rms_norm(const float* x, size_t x_stride, const float* gain, float* y, size_t y_stride,
              uint32_t rows, uint32_t cols, float eps) {
  for (uint32_t r = 0; r < rows; r++, x += x_stride, y += y_stride) {
    lanes mean = set1(sum_of_squares(x, cols) / float(cols) + eps);
    lanes inverse = div(set1(1.0f), square_root(mean));
    for_vectors(cols, [&](size_t i, auto get, auto put) {
      put(y + i, mul(mul(get(x + i), inverse), get(gain + i)));
    });
  }
}

void rope(float* x, size_t stride, uint32_t rows, uint32_t heads, uint32_t head_dim,
          uint32_t rotary, const float* cosines, const float* sines) {
  uint32_t half = rotary / 2;
  for (uint32_t r = 0; r < rows; r++, x += stride, cosines += half, sines += half) {
    for (uint32_t h = 0; h < heads; h++) {
      float *left = x + size_t{h} * head_dim, *right = left + half;
      for_vectors(half, [&](size_t i, auto get, auto put) {
        lanes a = get(left + i), b = get(right + i), c = get(cosines + i), s = get(sines + i);
        put(left + i, sub(mul(a, c), mul(b, s)));
        put(right + i, fma(b, c, mul(a, s)));
      });
    }
  }
}

/// gate / (1 + e^-gate), by e^-|gate| so that nothing overflows.
inline lanes silu(lanes gate) {
  lanes one = set1(1.0f), e = two_to(mul(absolute(gate), set1(-log2_e)));
  return mul(gate, div(select(less(gate, zero()), e, one), add(one, e)));
}

void silu_multiply(const float* gate, const float* up, float* y, size_t n) {
  for_vectors(
      n, [&](size_t i, auto get, auto put) { put(y + i, mul(silu(get(gate + i)), get(up + i))); });
}

void add(const float* x, float* y, size_t n) {
  for_vectors(n, [&](size_t i, auto get, auto put) { put(y + i, add(get(y + i), get(x + i))); });
}

void add_bias(const float* bias, float* y, size_t stride, uint32_t rows, uint32_t cols) {
  for (uint32_t r = 0; r < rows; r++) add(bias, y + r * stride, cols);
}

}  // namespace
}  // namespace lethe
