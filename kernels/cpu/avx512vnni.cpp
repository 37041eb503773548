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
#include "kernels/cpu/row_in_tiles.inl"
//
#include "kernels/cpu/bf16_vectors.hpp"
//
#include "kernels/cpu/row_of_pairs.inl"

namespace lethe {

extern const cpu_row avx512vnni, zen4, amx;
constexpr cpu_row without_tiles = row_of("avx512vnni");
constinit const cpu_row avx512vnni = without_tiles;
constinit const cpu_row zen4 = row_of("zen4", matmul<zen4_ways>);
constinit const cpu_row amx = row_in_tiles<common_ways>("amx", without_tiles);
constinit const cpu_row amx_tensor =
    row_of_tensor_arithmetic<common_ways>("amx_tensor", without_tiles);
constinit const cpu_row avx512bf16 = row_of_pairs<common_ways>("avx512bf16", without_tiles);
constinit const cpu_row zen4_bf16 = row_of_pairs<zen4_ways>("zen4_bf16", without_tiles);

}  // namespace lethe
