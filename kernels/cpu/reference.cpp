#include "kernels/cpu/lanes_reference.hpp"
//
#include "kernels/cpu/dot_direct.inl"
//
#include "kernels/cpu/row.inl"

namespace lethe {

extern const cpu_row reference;
constinit const cpu_row reference = row_of("reference");

}  // namespace lethe
