#include "kernels/cpu/lanes_avx2.hpp"

namespace lethe {
namespace {

/// In the encoding that processors without AVX-512 have.
inline int_lanes four_products(int_lanes c, byte_lanes w, byte_lanes x) {
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(c.lo) : "x"(w.lo), "x"(x.lo));
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(c.hi) : "x"(w.hi), "x"(x.hi));
  return c;
}

}  // namespace
}  // namespace lethe

#include "kernels/cpu/dot_direct.inl"
//
#include "kernels/cpu/row.inl"

namespace lethe {

extern const cpu_row avxvnni;
constinit const cpu_row avxvnni = row_of("avxvnni");

}  // namespace lethe
