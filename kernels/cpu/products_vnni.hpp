#pragma once

#include "kernels/cpu/lanes_avx512.hpp"

namespace lethe {
namespace {

/// As an instruction by name, since of the intrinsic g++ copies each sum before and after.
inline int_lanes four_products(int_lanes c, byte_lanes w, byte_lanes x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(c.v) : "v"(w.v), "v"(x.v));
  return c;
}

}  // namespace
}  // namespace lethe
