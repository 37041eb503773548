#include <cstring>

#include "runtime/base/bytes.hpp"
#include "runtime/base/check.hpp"
#include "runtime/model/quant_blocks.hpp"
#include "runtime/model/quantize.hpp"

namespace lethe {

namespace {

void read_block(const q8_0_block& b, float* out) {
  float d = f32_of_f16(b.d);
  for (int i = 0; i < 32; ++i) out[i] = float(b.q[i]) * d;
}

void read_block(const q4_0_block& b, float* out) {
  float d = f32_of_f16(b.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = float((b.q[i] & 15) - 8) * d;
    out[i + 16] = float((b.q[i] >> 4) - 8) * d;
  }
}

void read_block(const q4_1_block& b, float* out) {
  float d = f32_of_f16(b.d), m = f32_of_f16(b.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = float(b.q[i] & 15) * d + m;
    out[i + 16] = float(b.q[i] >> 4) * d + m;
  }
}

/// Five bits of element i of 32.
template <class Block>
int five_bits(const Block& b, int i) {
  int low = i < 16 ? b.q[i] & 15 : b.q[i - 16] >> 4;
  return low | (b.high[i / 8] >> i % 8 & 1) << 4;
}

void read_block(const q5_0_block& b, float* out) {
  float d = f32_of_f16(b.d);
  for (int i = 0; i < 32; ++i) out[i] = float(five_bits(b, i) - 16) * d;
}

void read_block(const q5_1_block& b, float* out) {
  float d = f32_of_f16(b.d), m = f32_of_f16(b.m);
  for (int i = 0; i < 32; ++i) out[i] = float(five_bits(b, i)) * d + m;
}

/// Four bits of element i of 32 j + i.
int k_nibble(const uint8_t (&q)[128], int j, int i) {
  uint8_t both = q[j / 2 * 32 + i];
  return j % 2 ? both >> 4 : both & 15;
}

void read_block(const q4_k_block& b, float* out) {
  float d = f32_of_f16(b.d), m = f32_of_f16(b.m);
  k_scales s = unpack(b.scales);
  for (int j = 0; j < 8; ++j) {
    float scale = d * float(s.scale[j]), min = m * float(s.min[j]);
    for (int i = 0; i < 32; ++i) out[32 * j + i] = scale * float(k_nibble(b.q, j, i)) - min;
  }
}

void read_block(const q5_k_block& b, float* out) {
  float d = f32_of_f16(b.d), m = f32_of_f16(b.m);
  k_scales s = unpack(b.scales);
  for (int j = 0; j < 8; ++j) {
    float scale = d * float(s.scale[j]), min = m * float(s.min[j]);
    for (int i = 0; i < 32; ++i) {
      int q = k_nibble(b.q, j, i) | (b.high[i] >> j & 1) << 4;
      out[32 * j + i] = scale * float(q) - min;
    }
  }
}

void read_block(const q6_k_block& b, float* out) {
  float d = f32_of_f16(b.d);
  for (int i = 0; i < 256; ++i) {
    int half = i / 128, part = i % 128 / 32, at = i % 32;
    uint8_t both = b.low[64 * half + part % 2 * 32 + at];
    int low = part < 2 ? both & 15 : both >> 4;
    int high = b.high[32 * half + at] >> 2 * part & 3;
    out[i] = d * float(b.scales[i / 16]) * float((low | high << 4) - 32);
  }
}

template <class Block>
void read_blocks(const std::byte* row, float* out, size_t n, uint32_t elements) {
  for (size_t i = 0; i < n / elements; ++i)
    read_block(load_le<Block>(row + i * sizeof(Block)), out + i * elements);
}

}  // namespace

void dequantize_row(dtype type, const std::byte* row, float* out, size_t n) {
  check(n % block_elements(type) == 0);
  switch (type) {
    case dtype::f32:
      std::memcpy(out, row, n * 4);
      return;
    case dtype::f16:
      for (size_t i = 0; i < n; ++i) out[i] = f32_of_f16(load_le<uint16_t>(row + 2 * i));
      return;
    case dtype::bf16:
      for (size_t i = 0; i < n; ++i) out[i] = f32_of_bf16(load_le<uint16_t>(row + 2 * i));
      return;
    case dtype::q8_0:
      return read_blocks<q8_0_block>(row, out, n, 32);
    case dtype::q4_0:
      return read_blocks<q4_0_block>(row, out, n, 32);
    case dtype::q4_1:
      return read_blocks<q4_1_block>(row, out, n, 32);
    case dtype::q5_0:
      return read_blocks<q5_0_block>(row, out, n, 32);
    case dtype::q5_1:
      return read_blocks<q5_1_block>(row, out, n, 32);
    case dtype::q4_k:
      return read_blocks<q4_k_block>(row, out, n, 256);
    case dtype::q5_k:
      return read_blocks<q5_k_block>(row, out, n, 256);
    case dtype::q6_k:
      return read_blocks<q6_k_block>(row, out, n, 256);
  }
}

}  // namespace lethe
