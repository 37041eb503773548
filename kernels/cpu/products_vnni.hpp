#pragma once

#include "kernels/cpu/lanes_avx512.hpp"

namespace lethe {
namespace {

inline int_lanes four_products(int_lanes c, byte_lanes w, byte_lanes x) {
  return {_mm512_dpbusd_epi32(c.v, w.v, x.v)};
}

}  // namespace
}  // namespace lethe
