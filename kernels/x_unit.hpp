#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lethe {

/// Integer products of a unit are summed from product_start on: the sum's bits are then the float
/// product_zero + sum, which holds for |sum| < 2^22; a unit's is at most 32 * 128 * 127.
inline constexpr int32_t product_start = 0x4b400000;
inline constexpr float product_zero = 0x1.8p23f;

/// 32 columns of one row of activations, quantized for integer products: value = scale * q, q in
/// [-127, 127].
struct x_unit {
  int8_t q[32];
  float scale;
  float scaled_sum;  // scale * sum of q
  int16_t sums[2];   // of q, per half: some formats scale by 16
  int32_t start;     // of products with numbers that are stored 128 too high
};

/// product_start - offset * sum of q, for the power of two that a type's numbers are stored too
/// high.
template <int32_t offset>
[[gnu::always_inline]] constexpr int32_t start_for(const x_unit& x) {
  if constexpr (offset == 0) return product_start;
  constexpr int shift = offset == 0 ? 0 : __builtin_ctz(128 / offset);
  return (x.start >> shift) + (product_start - (product_start >> shift));
}

/// 32 columns of one row of activations, rounded to bfloat16. They lie as the cpu_row
/// says that rounds them: as x_units do in tiles of 16 rows, or row after row.
struct x_rounded {
  uint16_t n[32];
};

/// How the units of some rows lie: in tiles of neighbouring rows, as equal as can be, and in a tile
/// unit after unit, of each the tile's rows. So products find what they need together.
struct x_layout {
  uint32_t rows, units;  // units of a row
  uint32_t tile;         // rows of all tiles but the last
};

/// Rows that are one tile. Of more a tile has six at most, or so many as the cpu_row says.
inline constexpr uint32_t x_few_rows = 8, x_tile_rows = 6;

/// Units behind the last one that products may read, for nothing: a lower tile is read as high as
/// the others.
inline constexpr uint32_t x_units_beyond = 15;

[[gnu::always_inline]] constexpr x_layout layout_of_x(uint32_t rows, uint32_t units,
                                                      uint32_t most_together) {
  uint32_t most = rows <= x_few_rows ? x_few_rows : most_together;
  uint32_t tiles = (rows + most - 1) / most;
  return {rows, units, tiles == 0 ? 1 : (rows + tiles - 1) / tiles};
}

/// Rows of the tile that begins at row r.
[[gnu::always_inline]] constexpr uint32_t rows_of_tile(const x_layout& x, uint32_t r) {
  return x.rows - r < x.tile ? x.rows - r : x.tile;
}

/// Where unit u of row r lies.
[[gnu::always_inline]] constexpr size_t place_of_unit(const x_layout& x, uint32_t r, uint32_t u) {
  uint32_t first = r / x.tile * x.tile;
  return size_t{first} * x.units + size_t{u} * rows_of_tile(x, first) + (r - first);
}

}  // namespace lethe
