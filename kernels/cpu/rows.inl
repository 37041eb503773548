// One row of a matrix as floats, by the formats' own formulas.

#include <stddef.h>
#include <stdint.h>

#include "kernels/panels.hpp"

namespace lethe {
namespace {

template <class Weights>
void float_row(const uint8_t* panel, uint32_t lane, uint32_t cols, float* y) {
  for (uint32_t k = 0; k < cols; k++) {
    float all[panel_rows];
    store(all, Weights::at(panel + size_t{k} * Weights::bytes));
    y[k] = all[lane];
  }
}

/// Number k of a unit, as stored (without sign, too high by the type's offset).
template <dtype T>
inline int32_t stored_number(const uint8_t* unit, uint32_t lane, uint32_t k) {
  constexpr unit_facts f = unit_of(T);
  const uint8_t* high = unit + f.scale_bytes + 4 * lane + k % 4;
  const uint8_t* numbers = high + f.high_bytes;
  if constexpr (T == dtype::q8_0) return numbers[k / 4 * 64];
  int32_t q = numbers[k % 16 / 4 * 64] >> (k / 16 * 4) & 15;
  if constexpr (has_fifth_bit<T>()) q |= (*high >> (k / 4) & 1) << 4;
  if constexpr (T == dtype::q6_k) q |= (high[k / 16 * 64] >> (k % 16 / 4 * 2) & 3) << 4;
  return q;
}

template <dtype T>
void unit_row(unit_place at, uint32_t lane, float* y) {
  float scales[panel_rows], minimums[panel_rows] = {};
  store(scales, scales_of<T>(at));
  if constexpr (has_minimum<T>()) store(minimums, minimums_of<T>(at));
  for (uint32_t k = 0; k < unit_columns; k++) {
    int32_t q = stored_number<T>(at.unit, lane, k) - offset_of<T>();
    float scale = scales[lane];
    if constexpr (T == dtype::q6_k) {
      q -= 32;
      scale *= float(int8_t(at.unit[2 * lane + k / 16]));
    }
    y[k] = scale * float(q);
    if constexpr (has_minimum<T>()) y[k] += minimums[lane];
  }
}

template <dtype T>
void quant_row(const uint8_t* panel, uint32_t lane, uint32_t cols, float* y) {
  for (uint32_t u = 0; u < cols / unit_columns; u++) {
    unit_row<T>(find_unit<T>(panel, u), lane, y + u * unit_columns);
  }
}

void row_to_float(const matrix& w, uint32_t r, float* y) {
  size_t stride = size_t{w.cols / block_elements(w.type)} * panel_block_bytes(w.type);
  stride = (stride + 63) / 64 * 64;
  const uint8_t* panel = (const uint8_t*)w.panels + r / panel_rows * stride;
  uint32_t lane = r % panel_rows;
  switch (w.type) {
    case dtype::f32:
      return float_row<f32_weights<cache::none>>(panel, lane, w.cols, y);
    case dtype::f16:
      return float_row<f16_weights<cache::none>>(panel, lane, w.cols, y);
    case dtype::bf16:
      return float_row<bf16_weights<cache::none>>(panel, lane, w.cols, y);
    case dtype::q8_0:
      return quant_row<dtype::q8_0>(panel, lane, w.cols, y);
    case dtype::q4_0:
      return quant_row<dtype::q4_0>(panel, lane, w.cols, y);
    case dtype::q4_1:
      return quant_row<dtype::q4_1>(panel, lane, w.cols, y);
    case dtype::q5_0:
      return quant_row<dtype::q5_0>(panel, lane, w.cols, y);
    case dtype::q5_1:
      return quant_row<dtype::q5_1>(panel, lane, w.cols, y);
    case dtype::q4_k:
      return quant_row<dtype::q4_k>(panel, lane, w.cols, y);
    case dtype::q5_k:
      return quant_row<dtype::q5_k>(panel, lane, w.cols, y);
    case dtype::q6_k:
      return quant_row<dtype::q6_k>(panel, lane, w.cols, y);
  }
}

}  // namespace
}  // namespace lethe
