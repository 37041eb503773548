#pragma once

#include "kernels/cpu/lanes_avx512.hpp"

namespace lethe {
namespace {

inline int_lanes four_products(int_lanes c, byte_lanes w, const int8_t* x) {
  return {_mm512_dpbusd_epi32(c.v, w.v, four_bytes(x).v)};
}

}  // namespace
}  // namespace lethe
