#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/lanes_avx512.hpp"

// Tiles of bytes or bfloat16 and their products, as AMX has them. As instructions by name: the
// intrinsics don't say that they read memory.

namespace lethe {
namespace {

/// Eight registers: 0 and 1 for rows of x, 2 and 3 for weights, 16 columns of four bytes each,
/// and 4 to 7 for sums, of each row of x 16 side by side.
class tile_registers {
 public:
  /// For products of so many rows of x, and of so many numbers of each at once.
  tile_registers(uint32_t rows, uint32_t numbers) {
    struct {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } shape;
    static_assert(sizeof shape == 64);
    for (int i = 0; i < 8; i++) {
      shape.row_bytes[i] = i < 2 ? uint16_t(numbers) : 64;
      shape.rows[i] = uint8_t(i == 2 || i == 3 ? numbers / 4 : rows);
    }
    asm volatile("ldtilecfg %0" ::"m"(shape));
  }
  /// What they hold is somebody's request.
  ~tile_registers() { asm volatile("tilerelease"); }
  tile_registers(const tile_registers&) = delete;
  tile_registers& operator=(const tile_registers&) = delete;

  /// Rows lie `step` bytes apart.
  template <uint32_t to>
  [[gnu::always_inline]] void load(const void* from, size_t step) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(to), "r"(from), "r"(step) : "memory");
  }
  template <uint32_t sums>
  [[gnu::always_inline]] void clear() {
    asm volatile("tilezero %%tmm%c0" ::"i"(sums));
  }
  /// Adds products of numbers with sign.
  template <uint32_t sums, uint32_t x, uint32_t weights>
  [[gnu::always_inline]] void multiply() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(x), "i"(weights));
  }
  /// The same of an x without sign.
  template <uint32_t sums, uint32_t x, uint32_t weights>
  [[gnu::always_inline]] void multiply_unsigned() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(x), "i"(weights));
  }
  /// Adds products of bfloat16, 32 of each: those of even columns as a chain of fused multiply-adds
  /// from zero, those of odd ones as another, then both together. Denormal numbers are zeros.
  template <uint32_t sums, uint32_t x, uint32_t weights>
  [[gnu::always_inline]] void multiply_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(x), "i"(weights));
  }
  template <uint32_t from>
  [[gnu::always_inline]] void store(void* to, size_t step) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(from), "r"(to), "r"(step) : "memory");
  }
};

/// To the nearest, a half to even; denormal numbers to zeros.
[[gnu::always_inline]] inline void round_to_bf16(lanes first, lanes second, uint16_t* to) {
  __m512i both;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(first.v), "v"(second.v));
  _mm512_storeu_si512(to, both);
}

}  // namespace
}  // namespace lethe
