#pragma once

#include "kernels/cuda/attend_spans.inl"

// What tensor cores are given of keys and values.

namespace lethe::device {

/// Numbers d to d + 3 of a row as bf16 (d is a multiple of four), zeros behind the row's end.
struct four_halves {
  uint32_t low, high;  // d and d + 1; d + 2 and d + 3
};

/// int8: without the row's scale; so they are exact. Of a row of a multiple of four, where d is in
/// it.
template <kv_type K>
LETHE_BODY four_halves halves_in(const uint8_t* row, uint32_t d) {
  if constexpr (K == kv_type::bf16) {
    return {load<uint32_t>(row + 2 * size_t{d}), load<uint32_t>(row + 2 * size_t{d} + 4)};
  } else {
    float f[4];
    uint32_t four = K == kv_type::int8 ? load<uint32_t>(row + d) : 0;
    for (uint32_t i = 0; i < 4; i++) {
      f[i] = K == kv_type::int8 ? float(int8_t(four >> 8 * i)) : kv_element<K>(row, d + i);
    }
    return {bf16_pair(f[0], f[1]), bf16_pair(f[2], f[3])};
  }
}
/// Of any row, wherever d is.
template <kv_type K>
LETHE_BODY four_halves halves_at(const uint8_t* row, uint32_t d, uint32_t head_dim) {
  if (d >= head_dim) return {0, 0};
  if constexpr (K == kv_type::int8) {
    return halves_in<K>(row, d);  // rows are padded with zeros
  } else if (K == kv_type::bf16 && head_dim % 2 == 0) {
    const uint8_t* at = row + 2 * size_t{d};
    return {load<uint32_t>(at), d + 2 < head_dim ? load<uint32_t>(at + 4) : 0};
  } else {
    float f[4];
    for (uint32_t i = 0; i < 4; i++) {
      f[i] = d + i < head_dim ? kv_element<K>(row, d + i) : 0.0f;
    }
    return {bf16_pair(f[0], f[1]), bf16_pair(f[2], f[3])};
  }
}

/// Column i of four rows of four.
LETHE_BODY product_columns<product_type::bf16> column_of(const four_halves (&v)[4], uint32_t i) {
  if (i == 0) return {low_halves(v[0].low, v[1].low), low_halves(v[2].low, v[3].low)};
  if (i == 1) return {high_halves(v[0].low, v[1].low), high_halves(v[2].low, v[3].low)};
  if (i == 2) return {low_halves(v[0].high, v[1].high), low_halves(v[2].high, v[3].high)};
  return {high_halves(v[0].high, v[1].high), high_halves(v[2].high, v[3].high)};
}

}  // namespace lethe::device
