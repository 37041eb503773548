#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/x_unit.hpp"

// Tiles of bytes and their products, as AMX has them. As instructions by name: the intrinsics don't
// say that they read memory.

namespace lethe {
namespace {

/// Eight registers. Two take turns for x, and four for sums, so that a product is under way while
/// the one before is stored.
class tile_registers {
 public:
  /// For so many rows of x.
  explicit tile_registers(uint32_t rows) {
    struct {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {32, 32, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {};
    } shape;
    static_assert(sizeof shape == 64);
    for (int i : {0, 1, 4, 5, 6, 7}) shape.rows[i] = uint8_t(rows);
    for (int i : {2, 3}) shape.rows[i] = 8;
    asm volatile("ldtilecfg %0" ::"m"(shape));
  }
  /// What they hold is somebody's request.
  ~tile_registers() { asm volatile("tilerelease"); }
  tile_registers(const tile_registers&) = delete;
  tile_registers& operator=(const tile_registers&) = delete;

  /// A unit of x times the same of one or two panels, of 512 bytes each.
  template <uint32_t turn>
  [[gnu::always_inline]] void multiply(const x_unit* x, const void* first, const void* second) {
    size_t step = sizeof(x_unit), vector = 64;
    if constexpr (turn == 0) {
      asm volatile("tileloadd (%0,%1,1), %%tmm0" ::"r"(x->q), "r"(step) : "memory");
      asm volatile("tileloadd (%0,%1,1), %%tmm2" ::"r"(first), "r"(vector) : "memory");
      asm volatile("tilezero %tmm4\n\ttdpbssd %tmm2, %tmm0, %tmm4");
      if (second == nullptr) return;
      asm volatile("tileloadd (%0,%1,1), %%tmm3" ::"r"(second), "r"(vector) : "memory");
      asm volatile("tilezero %tmm5\n\ttdpbssd %tmm3, %tmm0, %tmm5");
    } else {
      asm volatile("tileloadd (%0,%1,1), %%tmm1" ::"r"(x->q), "r"(step) : "memory");
      asm volatile("tileloadd (%0,%1,1), %%tmm2" ::"r"(first), "r"(vector) : "memory");
      asm volatile("tilezero %tmm6\n\ttdpbssd %tmm2, %tmm1, %tmm6");
      if (second == nullptr) return;
      asm volatile("tileloadd (%0,%1,1), %%tmm3" ::"r"(second), "r"(vector) : "memory");
      asm volatile("tilezero %tmm7\n\ttdpbssd %tmm3, %tmm1, %tmm7");
    }
  }
  /// The sums of that turn, with one or two panels: of each row of x 16 side by side.
  template <uint32_t turn>
  [[gnu::always_inline]] void store_sums(void* first, void* second) {
    size_t row = 64;
    if constexpr (turn == 0) {
      asm volatile("tilestored %%tmm4, (%0,%1,1)" ::"r"(first), "r"(row) : "memory");
      if (second == nullptr) return;
      asm volatile("tilestored %%tmm5, (%0,%1,1)" ::"r"(second), "r"(row) : "memory");
    } else {
      asm volatile("tilestored %%tmm6, (%0,%1,1)" ::"r"(first), "r"(row) : "memory");
      if (second == nullptr) return;
      asm volatile("tilestored %%tmm7, (%0,%1,1)" ::"r"(second), "r"(row) : "memory");
    }
  }
};

}  // namespace
}  // namespace lethe
