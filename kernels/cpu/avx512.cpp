#include "kernels/cpu/lanes_avx512.hpp"
//
#include "kernels/cpu/dot_narrow.inl"
//
#include "kernels/cpu/row.inl"

namespace lethe {

extern const cpu_row avx512;
constinit const cpu_row avx512 = row_of("avx512");

}  // namespace lethe
