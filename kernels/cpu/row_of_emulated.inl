// What tests need of a row whose instruction is emulated (four_products, included before).

#include "kernels/cpu/dot_direct.inl"
//
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
//
#include "kernels/cpu/attend.inl"

namespace lethe {
namespace {

consteval cpu_row row_of_emulated(const char* name, decltype(cpu_row::matmul) products) {
  return {.name = name,
          .x_tile_rows = x_tile_rows,
          .matmul = products,
          .quantize = quantize<x_tile_rows>,
          .row_to_float = row_to_float,
          .kv_store = kv_store,
          .attend = attend<>,
          .join_spans = join_spans};
}

}  // namespace
}  // namespace lethe
