#pragma once

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

namespace lethe {
namespace {

/// Rows of floats, `step` bytes apart, that tiles are stored to and loaded from.
struct tile_sums {
  float* at;
  size_t step;
};

/// Adds products of bf16 (amx_registers.hpp), T times 16 rows of x by P times 16 columns, unit
/// after unit: x(t, u) and w(p, u) say where tiles begin, sums(t, p) where sums are, or from
/// nothing on. beside(u) is done behind each unit.
template <uint32_t T, uint32_t P, class Sums, class X, class W, class Beside>
[[gnu::always_inline]] inline void multiply_bf16_units(tile_registers& tiles, uint32_t units,
                                                       bool from_zero, Sums sums, size_t x_step,
                                                       X x, W w, Beside beside) {
  constexpr size_t row = 64;  // bytes of a tile's row
  auto each_sum = [&](auto f) __attribute__((always_inline)) {
    f(std::integral_constant<uint32_t, 4>(), sums(0, 0));
    if constexpr (P > 1) f(std::integral_constant<uint32_t, 5>(), sums(0, 1));
    if constexpr (T > 1) f(std::integral_constant<uint32_t, 6>(), sums(1, 0));
    if constexpr (T > 1 && P > 1) f(std::integral_constant<uint32_t, 7>(), sums(1, 1));
  };
  each_sum([&](auto i, const tile_sums& s) __attribute__((always_inline)) {
    from_zero ? tiles.clear<i()>() : tiles.load<i()>(s.at, s.step);
  });
  for (uint32_t u = 0; u < units; u++) {
    tiles.load<0>(x(0, u), x_step);
    tiles.load<2>(w(0, u), row);
    tiles.multiply_bf16<4, 0, 2>();
    if constexpr (P > 1) {
      tiles.load<3>(w(1, u), row);
      tiles.multiply_bf16<5, 0, 3>();
    }
    if constexpr (T > 1) {
      tiles.load<1>(x(1, u), x_step);
      tiles.multiply_bf16<6, 1, 2>();
      if constexpr (P > 1) tiles.multiply_bf16<7, 1, 3>();
    }
    beside(u);
  }
  each_sum([&](auto i, const tile_sums& s)
               __attribute__((always_inline)) { tiles.store<i()>(s.at, s.step); });
}

}  // namespace
}  // namespace lethe
