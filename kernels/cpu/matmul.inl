#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu_row.hpp"

namespace lethe {
namespace {

template <weight_ways ways>
void matmul(const matrix& w, const product_part& part, const activations& x, float* y,
            size_t y_stride) {
  if (part.row_begin >= part.row_end || part.segment_begin >= part.segment_end) return;
  constexpr cache into = ways.into;
  bool ask = ways.asked_into(x.rows) != cache::none;
  switch (w.type) {
    case dtype::f32:
      return multiply_float<f32_weights<into>>(w, part, x, y, y_stride, ask);
    case dtype::f16:
      return multiply_float<f16_weights<into>>(w, part, x, y, y_stride, ask);
    case dtype::bf16:
      return multiply_float<bf16_weights<into>>(w, part, x, y, y_stride, ask);
    case dtype::q8_0:
      return multiply_quant<dtype::q8_0, ways>(w, part, x, y, y_stride);
    case dtype::q4_0:
      return multiply_quant<dtype::q4_0, ways>(w, part, x, y, y_stride);
    case dtype::q4_1:
      return multiply_quant<dtype::q4_1, ways>(w, part, x, y, y_stride);
    case dtype::q5_0:
      return multiply_quant<dtype::q5_0, ways>(w, part, x, y, y_stride);
    case dtype::q5_1:
      return multiply_quant<dtype::q5_1, ways>(w, part, x, y, y_stride);
    case dtype::q4_k:
      return multiply_quant<dtype::q4_k, ways>(w, part, x, y, y_stride);
    case dtype::q5_k:
      return multiply_quant<dtype::q5_k, ways>(w, part, x, y, y_stride);
    case dtype::q6_k:
      return multiply_quant<dtype::q6_k, ways>(w, part, x, y, y_stride);
  }
}

}  // namespace
}  // namespace lethe
