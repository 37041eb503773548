#include "kernels/cpu/lanes_avx2.hpp"
//
#include "kernels/cpu/dot_narrow.inl"
//
#include "kernels/cpu/row.inl"

namespace lethe {

extern const cpu_row avx2, zen3;
constinit const cpu_row avx2 = row_of("avx2");
constinit const cpu_row zen3 = row_of("zen3", matmul<zen3_ways>);

}  // namespace lethe
