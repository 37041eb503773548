// A row whose many rows and queries go through registers of tiles, made of one without.

#include "kernels/cpu/matmul_amx.inl"
//
#include "kernels/cpu/matmul_bf16_tiles.inl"
//
#include "kernels/cpu/attend_amx.inl"
#include "kernels/cpu/attend_bf16_tiles.inl"

namespace lethe {
namespace {

template <weight_ways ways>
consteval cpu_row row_in_tiles(const char* name, cpu_row row) {
  row.name = name;
  row.x_tile_rows = amx_rows;
  row.matmul = matmul_amx<ways>;
  row.quantize = quantize<amx_rows>;
  row.attend = attend<attend_int8_amx, attend_floats<bf16_numbers, asking::by_halves>>;
  return row;
}

template <weight_ways ways>
consteval cpu_row row_of_tensor_arithmetic(const char* name, cpu_row row) {
  row = row_in_tiles<ways>(name, row);
  row.matmul = matmul_tensor<ways>;
  row.round = round_rows;
  row.attend = attend<attend_int8_amx, attend_rounded>;
  row.join_spans = join_spans_of_pairs;
  return row;
}

}  // namespace
}  // namespace lethe
