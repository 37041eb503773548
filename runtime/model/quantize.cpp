#include "runtime/model/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/check.hpp"
#include "runtime/model/quant_blocks.hpp"
#include "runtime/model/quantize_k.hpp"

namespace lethe {

namespace {

float reciprocal(float d) { return d == 0 ? 0 : 1 / d; }

/// The element of largest magnitude, with its sign.
float extreme(const float* x) {
  float most = 0;
  for (int i = 0; i < 32; ++i)
    if (std::fabs(x[i]) > std::fabs(most)) most = x[i];
  return most;
}

void write_block(const float* x, q8_0_block& b) {
  float d = std::fabs(extreme(x)) / 127;
  float inverse = reciprocal(d);
  b.d = f16_of(d);
  for (int i = 0; i < 32; ++i) b.q[i] = int8_t(nearest(x[i] * inverse, -127, 127));
}

/// The extreme maps to the lowest level, which reaches one further than the highest.
void write_block(const float* x, q4_0_block& b) {
  float d = extreme(x) / -8;
  float inverse = reciprocal(d);
  b.d = f16_of(d);
  for (int i = 0; i < 16; ++i) {
    int low = nearest(x[i] * inverse, -8, 7) + 8, high = nearest(x[i + 16] * inverse, -8, 7) + 8;
    b.q[i] = uint8_t(low | high << 4);
  }
}

void put_five(int q, int i, uint8_t (&high)[4], uint8_t (&low)[16]) {
  low[i % 16] |= uint8_t(i < 16 ? q & 15 : (q & 15) << 4);
  high[i / 8] |= uint8_t((q >> 4) << i % 8);
}

void write_block(const float* x, q5_0_block& b) {
  b = {};
  float d = extreme(x) / -16;
  float inverse = reciprocal(d);
  b.d = f16_of(d);
  for (int i = 0; i < 32; ++i) put_five(nearest(x[i] * inverse, -16, 15) + 16, i, b.high, b.q);
}

void write_block(const float* x, q4_1_block& b) {
  auto [least, most] = std::minmax_element(x, x + 32);
  float d = (*most - *least) / 15;
  float inverse = reciprocal(d);
  b.d = f16_of(d);
  b.m = f16_of(*least);
  for (int i = 0; i < 16; ++i) {
    int low = nearest((x[i] - *least) * inverse, 0, 15);
    int high = nearest((x[i + 16] - *least) * inverse, 0, 15);
    b.q[i] = uint8_t(low | high << 4);
  }
}

void write_block(const float* x, q5_1_block& b) {
  b = {};
  auto [least, most] = std::minmax_element(x, x + 32);
  float d = (*most - *least) / 31;
  float inverse = reciprocal(d);
  b.d = f16_of(d);
  b.m = f16_of(*least);
  for (int i = 0; i < 32; ++i) put_five(nearest((x[i] - *least) * inverse, 0, 31), i, b.high, b.q);
}

template <class Block>
void write_blocks(const float* row, size_t n, std::byte* out, uint32_t elements) {
  for (size_t i = 0; i < n / elements; ++i) {
    Block block;
    write_block(row + i * elements, block);
    std::memcpy(out + i * sizeof block, &block, sizeof block);
  }
}

}  // namespace

int nearest(float x, int least, int most) {
  if (!(x > float(least))) return least;  // also NaN
  if (x >= float(most)) return most;
  return int(std::lrintf(x));
}

void quantize_row(dtype type, const float* row, size_t n, std::byte* out) {
  check(n % block_elements(type) == 0);
  switch (type) {
    case dtype::f32:
      std::memcpy(out, row, n * 4);
      return;
    case dtype::f16:
    case dtype::bf16:
      for (size_t i = 0; i < n; ++i) {
        uint16_t bits = type == dtype::f16 ? f16_of(row[i]) : bf16_of(row[i]);
        std::memcpy(out + 2 * i, &bits, 2);
      }
      return;
    case dtype::q8_0:
      return write_blocks<q8_0_block>(row, n, out, 32);
    case dtype::q4_0:
      return write_blocks<q4_0_block>(row, n, out, 32);
    case dtype::q4_1:
      return write_blocks<q4_1_block>(row, n, out, 32);
    case dtype::q5_0:
      return write_blocks<q5_0_block>(row, n, out, 32);
    case dtype::q5_1:
      return write_blocks<q5_1_block>(row, n, out, 32);
    case dtype::q4_k:
      return write_blocks<q4_k_block>(row, n, out, 256);
    case dtype::q5_k:
      return write_blocks<q5_k_block>(row, n, out, 256);
    case dtype::q6_k:
      return write_blocks<q6_k_block>(row, n, out, 256);
  }
}

}  // namespace lethe
