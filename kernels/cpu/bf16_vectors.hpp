#pragma once

#include "kernels/cpu/lanes_avx512.hpp"

// Products of bf16 pairs by the processor. As text for the assembler: rows that have it share a
// file with some that don't.

namespace lethe {
namespace {

/// sum + second of w * second of x + first of w * first of x, each multiplication added fused;
/// denormal numbers are zeros.
[[gnu::always_inline]] inline lanes add_pairs(lanes w, lanes x, lanes sum) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.v) : "v"(x.v), "v"(w.v));
  return sum;
}

}  // namespace
}  // namespace lethe
