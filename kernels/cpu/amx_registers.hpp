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
    load<turn>(x->q, sizeof(x_unit));
    load<2>(first, 64);
    product<turn, 2, 4 + 2 * turn>();
    if (second == nullptr) return;
    load<3>(second, 64);
    product<turn, 3, 5 + 2 * turn>();
  }
  /// The sums of that turn, with one or two panels: of each row of x 16 side by side.
  template <uint32_t turn>
  [[gnu::always_inline]] void store_sums(void* first, void* second) {
    store<4 + 2 * turn>(first);
    if (second != nullptr) store<5 + 2 * turn>(second);
  }

 private:
  template <uint32_t to>
  [[gnu::always_inline]] static void load(const void* from, size_t step) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(to), "r"(from), "r"(step) : "memory");
  }
  template <uint32_t x, uint32_t weights, uint32_t to>
  [[gnu::always_inline]] static void product() {
    asm volatile("tilezero %%tmm%c2\n\ttdpbssd %%tmm%c1, %%tmm%c0, %%tmm%c2" ::"i"(x), "i"(weights),
                 "i"(to));
  }
  template <uint32_t from>
  [[gnu::always_inline]] static void store(void* to) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(from), "r"(to), "r"(size_t{64}) : "memory");
  }
};

}  // namespace
}  // namespace lethe
