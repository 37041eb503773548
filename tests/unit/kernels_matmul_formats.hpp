#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/matrix.hpp"

// The weight formats as their files define them, written apart from the kernels, and random rows.

namespace lethe::formats {

inline float f16(uint16_t h) {
  int exponent = h >> 10 & 31, fraction = h & 1023;
  float size = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent     ? std::ldexp(float(1024 + fraction), exponent - 25)
                              : std::ldexp(float(fraction), -24);
  return h >> 15 ? -size : size;
}

inline float f16_at(const uint8_t* p) { return f16(uint16_t(p[0] | p[1] << 8)); }

/// The value of each weight, and how large its terms are (for bounds on rounding).
struct weights {
  std::vector<float> value, size;
  void put(float scaled, float minimum) {
    value.push_back(scaled - minimum);
    size.push_back(std::abs(scaled) + std::abs(minimum));
  }
};

inline int nibble(const uint8_t* qs, int k) { return k < 16 ? qs[k] & 15 : qs[k - 16] >> 4; }

inline void block_of_32(dtype t, const uint8_t* b, weights& to) {
  bool has_minimum = t == dtype::q4_1 || t == dtype::q5_1;
  bool five = t == dtype::q5_0 || t == dtype::q5_1;
  float d = f16_at(b), m = has_minimum ? f16_at(b + 2) : 0;
  const uint8_t* rest = b + (has_minimum ? 4 : 2);
  uint32_t fifth = 0;
  if (five) std::memcpy(&fifth, rest, 4);
  const uint8_t* qs = rest + (five ? 4 : 0);
  for (int k = 0; k < 32; k++) {
    int q = t == dtype::q8_0 ? int8_t(qs[k]) : nibble(qs, k) + int(fifth >> k & 1) * 16;
    if (t == dtype::q4_0) q -= 8;
    if (t == dtype::q5_0) q -= 16;
    to.put(d * float(q), has_minimum ? -m : 0);
  }
}

inline void block_q45_k(bool five, const uint8_t* b, weights& to) {
  float d = f16_at(b), dmin = f16_at(b + 2);
  const uint8_t *s = b + 4, *qh = b + 16, *qs = b + (five ? 48 : 16);
  for (int j = 0; j < 8; j++) {
    int sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    int m = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
    for (int k = 0; k < 32; k++) {
      int q = j % 2 ? qs[j / 2 * 32 + k] >> 4 : qs[j / 2 * 32 + k] & 15;
      if (five && (qh[k] >> j & 1)) q += 16;
      to.put(d * float(sc) * float(q), dmin * float(m));
    }
  }
}

inline void block_q6_k(const uint8_t* b, weights& to) {
  float d = f16_at(b + 208);
  for (int i = 0; i < 256; i++) {
    int half = i / 128, j = i % 128 / 32, l = i % 32;
    uint8_t low = b[half * 64 + j % 2 * 32 + l], high = b[128 + half * 32 + l];
    int q = (j < 2 ? low & 15 : low >> 4) | (high >> (2 * j) & 3) << 4;
    to.put(d * float(int8_t(b[192 + i / 16])) * float(q - 32), 0);
  }
}

/// One row of a file.
inline weights definition(dtype t, const uint8_t* row, uint32_t cols) {
  weights to;
  for (uint32_t c = 0; c < cols; c += block_elements(t), row += block_bytes(t)) {
    uint32_t bits = 0;
    switch (t) {
      case dtype::f32:
        std::memcpy(&bits, row, 4);
        break;
      case dtype::bf16:
        bits = uint32_t(row[0] | row[1] << 8) << 16;
        break;
      case dtype::f16:
        to.put(f16_at(row), 0);
        continue;
      case dtype::q4_k:
        block_q45_k(false, row, to);
        continue;
      case dtype::q5_k:
        block_q45_k(true, row, to);
        continue;
      case dtype::q6_k:
        block_q6_k(row, to);
        continue;
      default:
        block_of_32(t, row, to);
        continue;
    }
    float value;
    std::memcpy(&value, &bits, 4);
    to.put(value, 0);
  }
  return to;
}

using random = std::mt19937;

inline void put_u16(uint8_t* p, uint32_t v) { p[0] = uint8_t(v), p[1] = uint8_t(v >> 8); }

/// A half between 2^-9 and 2^-5 with either sign.
inline void put_scale(uint8_t* p, random& r) {
  put_u16(p, (r() & 0x8000) | (0x1800 + r() % 0x1000));
}

/// Rows of random numbers in the file's layout; scales are tame, all numbers are possible.
inline std::vector<uint8_t> file_rows(dtype t, uint32_t rows, uint32_t cols, random& r) {
  uint32_t size = block_bytes(t);
  std::vector<uint8_t> bytes(size_t{rows} * (cols / block_elements(t)) * size);
  for (uint8_t& b : bytes) b = uint8_t(r());
  for (size_t i = 0; i < bytes.size(); i += size) {
    uint8_t* b = &bytes[i];
    float value = float(int32_t(r())) * 0x1p-32f;
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    switch (t) {
      case dtype::f32:
        std::memcpy(b, &bits, 4);
        break;
      case dtype::bf16:
        put_u16(b, bits >> 16);
        break;
      case dtype::q8_0:
      case dtype::q4_0:
      case dtype::q5_0:
      case dtype::f16:
        put_scale(b, r);
        break;
      case dtype::q6_k:
        put_scale(b + 208, r);
        break;
      default:
        put_scale(b, r), put_scale(b + 2, r);
    }
  }
  return bytes;
}

/// Panels with their file's rows.
struct tensor {
  dtype type;
  uint32_t rows, cols;
  std::vector<uint8_t> file;
  std::vector<std::byte> memory;
  matrix panels;

  tensor(dtype t, uint32_t n, uint32_t k, random& r)
      : type(t), rows(n), cols(k), file(file_rows(t, n, k, r)), memory(matrix_bytes(t, n, k) + 64) {
    std::byte* start = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
    repack_panels(t, n, k, 0, (n + panel_rows - 1) / panel_rows, row_of, this, start);
    panels = {t, n, k, start};
  }
  tensor(const tensor&) = delete;
  const uint8_t* row(uint32_t r) const {
    return file.data() + size_t{r} * (cols / block_elements(type)) * block_bytes(type);
  }
  static const std::byte* row_of(const void* self, uint32_t r) {
    return reinterpret_cast<const std::byte*>(static_cast<const tensor*>(self)->row(r));
  }
  weights meaning(uint32_t r) const { return definition(type, row(r), cols); }
};

inline constexpr dtype all_types[] = {dtype::f32,  dtype::f16,  dtype::bf16, dtype::q8_0,
                                      dtype::q4_0, dtype::q4_1, dtype::q5_0, dtype::q5_1,
                                      dtype::q4_k, dtype::q5_k, dtype::q6_k};

}  // namespace lethe::formats
