#include "kernels/cpu/lanes_avx512.hpp"
//
#include "kernels/cpu/products_vnni.hpp"
//
#include "kernels/cpu/dot_direct.inl"
//
#include "kernels/cpu/row.inl"
//
#include "kernels/cpu/amx_registers.hpp"
//
#include "kernels/cpu/matmul_amx.inl"
//
#include "kernels/cpu/matmul_bf16_tiles.inl"
//
#include "kernels/cpu/attend_amx.inl"
#include "kernels/cpu/attend_bf16_tiles.inl"

namespace lethe {
namespace {

consteval cpu_row row_with_tiles() {
  cpu_row row = row_of("amx", matmul_amx<common_ways>);
  row.x_tile_rows = amx_rows;
  row.quantize = quantize<amx_rows>;
  row.attend = attend<attend_int8_amx>;
  return row;
}

consteval cpu_row row_of_tensor_arithmetic() {
  cpu_row row = row_with_tiles();
  row.name = "amx_tensor";
  row.matmul = matmul_tensor<common_ways>;
  row.round = round_rows;
  row.attend = attend<attend_int8_amx, attend_rounded>;
  return row;
}

}  // namespace

extern const cpu_row avx512vnni, zen4, amx;
constinit const cpu_row avx512vnni = row_of("avx512vnni");
constinit const cpu_row zen4 = row_of("zen4", matmul<zen4_ways>);
constinit const cpu_row amx = row_with_tiles();
constinit const cpu_row amx_tensor = row_of_tensor_arithmetic();

}  // namespace lethe
