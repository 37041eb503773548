// All kernels of a row, over the lanes and integer products that were included before.

#include "kernels/cpu/units.inl"
//
#include "kernels/cpu/segments.inl"
//
#include "kernels/cpu/matmul_float.inl"
#include "kernels/cpu/matmul_quant.inl"
//
#include "kernels/cpu/matmul.inl"
#include "kernels/cpu/quantize.inl"
#include "kernels/cpu/rows.inl"
#include "kernels/cpu/vector_ops.inl"
//
#include "kernels/cpu/attend.inl"
#include "kernels/cpu/draw.inl"

namespace lethe {
namespace {

/// A constant: code that makes it as the program starts would have the row's instructions.
consteval cpu_row row_of(const char* name,
                         decltype(cpu_row::matmul) products = matmul<common_ways>) {
  return {.name = name,
          .x_tile_rows = x_tile_rows,
          .matmul = products,
          .quantize = quantize<x_tile_rows>,
          .row_to_float = row_to_float,
          .rms_norm = rms_norm,
          .rope = rope,
          .kv_store = kv_store,
          .attend = attend<>,
          .join_spans = join_spans,
          .silu_multiply = silu_multiply,
          .add = add,
          .add_bias = add_bias,
          .draw = draw_functions};
}

}  // namespace
}  // namespace lethe
