#pragma once

#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/cpu_row.hpp"

namespace lethe {

extern const cpu_row reference;

/// Units of x that lie as the reference wants them, in tiles of another height.
inline std::vector<x_unit> laid_in_tiles(const std::vector<x_unit>& units, uint32_t rows,
                                         uint32_t cols, uint32_t tile_rows) {
  x_layout from = layout_of_x(rows, cols / 32, reference.x_tile_rows);
  x_layout to = layout_of_x(rows, cols / 32, tile_rows);
  std::vector<x_unit> all(units.size());
  for (uint32_t r = 0; r < rows; r++) {
    for (uint32_t u = 0; u < from.units; u++)
      all[place_of_unit(to, r, u)] = units[place_of_unit(from, r, u)];
  }
  return all;
}

/// Quantized rows one after the other, as a device has them.
struct plain_rows {
  std::vector<int8_t> q;
  std::vector<float> scales;
  std::vector<int16_t> sums;

  plain_rows() = default;
  plain_rows(const cpu_row& row, const std::vector<x_unit>& units, uint32_t rows, uint32_t cols) {
    x_layout layout = layout_of_x(rows, cols / 32, row.x_tile_rows);
    for (uint32_t r = 0; r < rows; r++) {
      for (uint32_t u = 0; u < layout.units; u++) {
        const x_unit& unit = units[place_of_unit(layout, r, u)];
        q.insert(q.end(), unit.q, unit.q + 32);
        scales.push_back(unit.scale);
        sums.insert(sums.end(), unit.sums, unit.sums + 2);
      }
    }
  }
};

inline std::vector<x_unit> quantized_by(const cpu_row& row, const std::vector<float>& x,
                                        uint32_t rows, uint32_t cols, size_t stride) {
  std::vector<float> near;
  for (uint32_t r = 0; r < rows; r++)
    near.insert(near.end(), x.begin() + r * stride, x.begin() + r * stride + cols);
  std::vector<x_unit> units(near.size() / 32);
  row.quantize(near.data(), rows, cols, 0, near.size(), units.data());
  return units;
}

/// To the nearest, a half to even; denormal numbers are zeros.
inline uint16_t rounded_to_bf16(float x) {
  if (std::isnan(x)) return uint16_t(std::bit_cast<uint32_t>(x) >> 16 | 0x40);
  if (std::abs(x) < 0x1p-126f) return uint16_t(std::signbit(x) << 15);
  uint32_t bits = std::bit_cast<uint32_t>(x);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Rows of x as floats, `stride` apart, and, where its columns are whole units, quantized by the
/// reference.
struct input {
  uint32_t rows, cols;
  size_t stride;
  std::vector<float> f;
  static constexpr uint32_t tall_rows = 16;
  std::vector<x_unit> units, tall;               // as the reference and as amx want them
  std::vector<x_rounded> rounded, rounded_tall;  // row after row, and as amx_tensor does
  plain_rows plain;

  input(uint32_t m, uint32_t k, size_t apart, std::vector<float> values)
      : rows(m), cols(k), stride(apart), f(std::move(values)) {
    if (k % 32 != 0) return;
    units = quantized_by(reference, f, m, k, stride);
    tall = laid_in_tiles(units, m, k, tall_rows);
    tall.resize(tall.size() + x_units_beyond);
    plain = {reference, units, m, k};
    x_layout layout = layout_of_x(m, k / 32, tall_rows);
    rounded.resize(size_t{m} * layout.units);
    rounded_tall.resize(rounded.size() + x_units_beyond);
    for (uint32_t r = 0; r < m; r++) {
      for (uint32_t u = 0; u < layout.units; u++) {
        x_rounded& unit = rounded[size_t{r} * layout.units + u];
        for (uint32_t i = 0; i < 32; i++) unit.n[i] = rounded_to_bf16(f[r * stride + u * 32 + i]);
        rounded_tall[place_of_unit(layout, r, u)] = unit;
      }
    }
  }
  activations view(const cpu_row& row = reference) const {
    const std::vector<x_unit>& own = row.x_tile_rows == tall_rows ? tall : units;
    return {.rows = rows,
            .f = f.data(),
            .stride = stride,
            .units = own.data(),
            .rounded = rounded_for(row).data()};
  }
  const std::vector<x_rounded>& rounded_for(const cpu_row& row) const {
    return row.x_tile_rows == tall_rows ? rounded_tall : rounded;
  }
};

}  // namespace lethe
