#include "kernels/cpu/lanes_avx512.hpp"
//
#include "kernels/cpu/products_vnni.hpp"
//
#include "kernels/cpu/dot_direct.inl"
//
#include "kernels/cpu/row.inl"

namespace lethe {

extern const cpu_row avx512vnni, zen4;
constinit const cpu_row avx512vnni = row_of("avx512vnni");
constinit const cpu_row zen4 = row_of("zen4", matmul<zen4_ways>);

}  // namespace lethe
