#pragma once

#include "kernels/cuda/matmul_quant.inl"

// Products of quantized weights with more than few_rows rows of x, on tensor cores. A unit is one
// product of bytes, and a panel lies as it is read: lane 4 * g + t of a warp has vectors t and
// t + 4 of rows g and g + 8, and of row g of x words t and t + 4. Sums of integers are exact in any
// order; floats go in add_unit's, so the bits are its bits.

namespace lethe::device {

/// What a unit's sums are multiplied by, of a row of weights: the scale, then the minimum, or
/// q6_k's scales of the halves.
template <dtype T>
struct weight_factors {
  static constexpr uint32_t count = T == dtype::q6_k ? 3 : has_minimum<T>() ? 2 : 1;
  float v[count];

  weight_factors() = default;
  LETHE_BODY explicit weight_factors(const unit_scales& s) {
    v[0] = s.scale;
    if constexpr (has_minimum<T>()) v[1] = s.minimum;
    if constexpr (T == dtype::q6_k) v[1] = float(s.half[0]), v[2] = float(s.half[1]);
  }
};

/// And of a row of x: the scale, then what the minimum is times, or where sums begin (q6_k: of the
/// halves), which is where the type's offset has its place.
template <dtype T>
struct x_factors {
  static constexpr uint32_t count = T == dtype::q6_k ? 3 : T == dtype::q8_0 ? 1 : 2;
  uint32_t v[count];

  x_factors() = default;
  LETHE_BODY x_factors(float scale, uint32_t both_sums) {
    int32_t sums[] = {int16_t(both_sums & 0xffff), int16_t(both_sums >> 16)};
    v[0] = bits_of(scale);
    if constexpr (has_minimum<T>()) v[1] = bits_of(scale * float(sums[0] + sums[1]));
    if constexpr (offset_of<T>() != 0) {
      v[1] = uint32_t(product_start - offset_of<T>() * (sums[0] + sums[1]));
    }
    if constexpr (T == dtype::q6_k) {
      for (uint32_t i = 0; i < 2; i++) v[1 + i] = uint32_t(product_start - 32 * sums[i]);
    }
  }
};

/// A warp's 16 x 8 numbers of a product, as its lanes hold them (lane_sums): rows g and g + 8 of
/// the panel, columns 2 * t and 2 * t + 1, which are rows of x.
template <dtype T>
struct int8_tile_factors {
  weight_factors<T> w[2];
  x_factors<T> x[2];
};

LETHE_BODY float float_of_sum(int32_t sum) { return from_bits(uint32_t(sum)) - product_zero; }

/// The products of one unit times the scales of their weights.
template <dtype T, class Block>
LETHE_BODY lane_sums<float> scaled_products(Block& block, const uint32_t (&a)[4],
                                            const uint32_t (&b)[2], const int8_tile_factors<T>& f) {
  lane_sums<float> scaled;
  if constexpr (T == dtype::q6_k) {
    constexpr product_type half = product_type::s8_half;
    product_sums<half> c[2];
    for (uint32_t h = 0; h < 2; h++) {
      for (uint32_t i = 0; i < 4; i++) c[h].c[i] = int32_t(f.x[i % 2].v[1 + h]);
      c[h] = block.template multiply<half>({{a[2 * h], a[2 * h + 1]}}, {{b[h]}}, c[h]);
    }
    for (uint32_t i = 0; i < 4; i++) {
      // Whole numbers below 2^24 (2 * 16 * 32 * 127 * 128): not rounded yet.
      float second = fused(f.w[i / 2].v[2], float_of_sum(c[1].c[i]), 0.0f);
      float dot = fused(f.w[i / 2].v[1], float_of_sum(c[0].c[i]), second);
      scaled.c[i] = fused(dot, f.w[i / 2].v[0], 0.0f);
    }
  } else {
    constexpr product_type whole = product_type::s8;
    product_sums<whole> c;
    for (uint32_t i = 0; i < 4; i++) {
      c.c[i] = offset_of<T>() != 0 ? int32_t(f.x[i % 2].v[x_factors<T>::count - 1]) : product_start;
    }
    c = block.template multiply<whole>({{a[0], a[1], a[2], a[3]}}, {{b[0], b[1]}}, c);
    for (uint32_t i = 0; i < 4; i++) scaled.c[i] = scaled_product(c.c[i], f.w[i / 2].v[0]);
  }
  return scaled;
}

/// add_unit for a warp's tile.
template <dtype T, class Block>
LETHE_BODY void add_products(Block& block, const uint32_t (&a)[4], const uint32_t (&b)[2],
                             const int8_tile_factors<T>& f, float (&sums)[4]) {
  lane_sums<float> scaled = scaled_products<T>(block, a, b, f);
  for (uint32_t i = 0; i < 4; i++) {
    const weight_factors<T>& w = f.w[i / 2];
    const x_factors<T>& x = f.x[i % 2];
    sums[i] = fused(scaled.c[i], from_bits(x.v[0]), sums[i]);
    if constexpr (has_minimum<T>()) sums[i] = fused(w.v[1], from_bits(x.v[1]), sums[i]);
  }
}

/// A lane's words of a unit of a panel, as they lie.
struct packed_rows {
  packed_pair row[2];  // g and g + 8
};
template <dtype T>
LETHE_BODY packed_rows read_rows(const uint8_t* panel, uint32_t unit, uint32_t lane) {
  packed_rows p;
  for (uint32_t i = 0; i < 2; i++) {
    p.row[i] = unit_place<T>(panel, unit, lane / 4 + 8 * i).read_pair(lane % 4);
  }
  return p;
}
template <dtype T>
LETHE_BODY void rows_of(const packed_rows& p, uint32_t lane, uint32_t (&a)[4]) {
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t pair[2];
    unit_place<T>::pair_of(p.row[i], lane % 4, pair);
    a[i] = pair[0];
    a[i + 2] = pair[1];
  }
}

/// R rows of x: a block takes a panel, a warp a segment of it, and reads x from memory.
template <dtype T, uint32_t R>
struct int8_rows {
  static constexpr uint32_t threads = segments * warp_lanes, side_by_side = 2;
  static constexpr uint32_t tiles = R / 8;
  static constexpr bool early = true;
  // With 32 rows registers end; with 16 those of the types that have most to hold.
  static constexpr uint32_t units_ahead =
      R == 32 ? (T == dtype::q6_k ? 1 : 2)
              : (T == dtype::q8_0 || (R == 16 && has_fifth_bit<T>()) ? 2 : 4);
  product_place place;
  x_rows x;

  launch_shape shape() const { return place.shape(R, join_words<R>); }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    product_stretch s = stretch_of<T, warp_lanes>(block, place);
    float sums[tiles][4] = {};
    uint32_t u = s.begin / unit_columns, end = s.end / unit_columns;
    for (; u + units_ahead <= end; u += units_ahead) add_units<units_ahead>(block, s, u, sums);
    for (; u < end; u++) add_units<1>(block, s, u, sums);
    store(block, s, sums);
  }

 private:
  /// Without a branch between reading and adding, as in float_rows.
  template <uint32_t count, class Block>
  LETHE_BODY void add_units(Block& block, const product_stretch& s, uint32_t u,
                            float (&sums)[tiles][4]) const {
    packed_unit w[count];
    for (uint32_t i = 0; i < count; i++) w[i] = read(s, u + i);
    for (uint32_t i = 0; i < count; i++) {
      add(block, s, w[i], u + i - s.origin / unit_columns, sums);
    }
  }
  struct packed_unit {
    packed_rows numbers;
    packed_scales scales[2];
  };
  LETHE_BODY static packed_unit read(const product_stretch& s, uint32_t u) {
    packed_unit p{read_rows<T>(s.panel, u, s.lane), {}};
    for (uint32_t i = 0; i < 2; i++) {
      p.scales[i] = unit_place<T>(s.panel, u, s.lane / 4 + 8 * i).read_scales();
    }
    return p;
  }
  template <class Block>
  LETHE_BODY void add(Block& block, const product_stretch& s, const packed_unit& packed,
                      uint32_t unit, float (&sums)[tiles][4]) const {
    uint32_t a[4], g = s.lane / 4, t = s.lane % 4;
    rows_of<T>(packed.numbers, s.lane, a);
    int8_tile_factors<T> f;
    for (uint32_t i = 0; i < 2; i++) {
      f.w[i] = weight_factors<T>(unit_place<T>::scales_of(packed.scales[i]));
    }
    for (uint32_t tile = 0; tile < tiles; tile++) {
      uint32_t first = block.y() * R + tile * 8;
      const int8_t* q = x.rows.q + 32 * x.place(least_of(first + g, place.rows - 1), unit);
      uint32_t b[2] = {load<uint32_t>(q + 4 * t), load<uint32_t>(q + 4 * t + 16)};
      for (uint32_t i = 0; i < 2; i++) {
        size_t at = x.place(least_of(first + 2 * t + i, place.rows - 1), unit);
        f.x[i] = x_factors<T>(x.rows.scales[at], load<uint32_t>(x.rows.sums + 2 * at));
      }
      add_products<T>(block, a, b, f, sums[tile]);
    }
  }
  template <class Block>
  LETHE_BODY void store(Block& block, const product_stretch& s,
                        const float (&sums)[tiles][4]) const {
    for (uint32_t j = 0; j < 4 * tiles; j++) {
      uint32_t r = j / 4 * 8 + s.lane % 4 * 2 + j % 2, n = s.lane / 4 + j % 4 / 2 * 8;
      block.put((r * segments + s.segment) * panel_rows + n, sums[j / 4][j % 4]);
    }
    block.barrier();
    store_joined<R, threads>(block, place, block.x());
  }
};

}  // namespace lethe::device
