#pragma once

#include "kernels/cuda/matmul_join.inl"

// Products with quantized weights: integers within a unit of 32 columns, which are exact in any
// order, and floats between units, in the CPU's.

namespace lethe::device {

/// 32 columns of one row of x.
struct x_unit {
  uint32_t q[8];
  float scale;
  int32_t sums[2];  // of q, per half
};

/// The halves' sums as they lie in memory, two int16.
LETHE_BODY void set_sums(x_unit& x, uint32_t both) {
  x.sums[0] = int16_t(both & 0xffff);
  x.sums[1] = int16_t(both >> 16);
}

LETHE_BODY int32_t dot_words(const uint32_t* w, const uint32_t* q, uint32_t count) {
  int32_t sum = 0;
  for (uint32_t i = 0; i < count; i++) sum = dot_four(w[i], q[i], sum);
  return sum;
}

/// A sum of a unit's integer products, from product_start on, times the scale of its weights. Those
/// of q6_k's halves, before they are multiplied by their scales, are below 2^22, too.
LETHE_BODY float scaled_product(int32_t sum, float scale) {
  return fused(from_bits(uint32_t(sum)), scale, -product_zero * scale);
}

/// sum + unit * x: the integer sum times the weights' scale, that times x's, then the minimum times
/// x's sum, each one fused multiply-add.
template <dtype T>
LETHE_BODY float add_unit(const unit_weights& weights, const x_unit& x, float sum) {
  const uint32_t* w = weights.numbers.word;
  const unit_scales& s = weights.scales;
  int32_t x_sum = x.sums[0] + x.sums[1];
  float scaled;
  if constexpr (T == dtype::q6_k) {
    // Greater than a start allows; and a zero has no sign.
    int32_t dot = s.half[0] * (dot_words(w, x.q, 4) - 32 * x.sums[0]) +
                  s.half[1] * (dot_words(w + 4, x.q + 4, 4) - 32 * x.sums[1]);
    scaled = fused(float(dot), s.scale, 0.0f);
  } else {
    int32_t start = product_start - offset_of<T>() * x_sum;
    scaled = scaled_product(dot_words(w, x.q, 8) + start, s.scale);
  }
  sum = fused(scaled, x.scale, sum);
  if constexpr (has_minimum<T>()) sum = fused(s.minimum, x.scale * float(x_sum), sum);
  return sum;
}

/// The quantized rows of x; `units` of them a row.
struct x_rows {
  quantized_rows rows;
  uint32_t units;

  LETHE_BODY size_t place(uint32_t row, uint32_t unit) const { return size_t{row} * units + unit; }
  LETHE_BODY x_unit at(uint32_t row, uint32_t unit) const {
    size_t i = place(row, unit);
    four_words low = load<four_words>(rows.q + 32 * i);
    four_words high = load<four_words>(rows.q + 32 * i + 16);
    x_unit x;
    for (uint32_t j = 0; j < 4; j++) x.q[j] = low.v[j], x.q[j + 4] = high.v[j];
    x.scale = rows.scales[i];
    set_sums(x, load<uint32_t>(rows.sums + 2 * i));
    return x;
  }
};

/// R rows of x, each read by all threads at once.
template <dtype T, uint32_t R>
struct quant_rows {
  static constexpr uint32_t threads = product_threads;
  static constexpr uint32_t units_ahead = R > 1 ? 2 : 4, side_by_side = 4;
  static constexpr bool early = true;
  product_place place;
  x_rows x;

  launch_shape shape() const { return place.shape(R, join_words<R>); }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    product_stretch s = stretch_of<T>(block, place);
    float sums[R] = {};
    uint32_t u = s.begin / unit_columns, end = s.end / unit_columns;
    for (; u + units_ahead <= end; u += units_ahead) add<units_ahead>(block, s, u, sums);
    for (; u < end; u++) add<1>(block, s, u, sums);
    store_products<R>(block, place, sums);
  }

 private:
  /// Without a branch between reading and adding, as in float_rows.
  template <uint32_t count, class Block>
  LETHE_BODY void add(Block& block, const product_stretch& s, uint32_t u, float (&sums)[R]) const {
    unit_weights w[count];
    for (uint32_t i = 0; i < count; i++) {
      w[i] = unit_place<T>(s.panel, u + i, s.lane).weights();
    }
    for (uint32_t i = 0; i < count; i++) {
      for (uint32_t r = 0; r < R; r++) {
        uint32_t row = least_of(block.y() * R + r, place.rows - 1);
        x_unit from = x.at(row, u + i - s.origin / unit_columns);
        sums[r] = add_unit<T>(w[i], from, sums[r]);
      }
    }
  }
};

}  // namespace lethe::device
