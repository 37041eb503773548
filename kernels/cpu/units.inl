// A unit of quantized weights (32 columns, 16 rows) in registers, and its share of a product.

#include <stddef.h>
#include <stdint.h>

#include "kernels/panels.hpp"

namespace lethe {
namespace {

/// 32 columns of one row of x, as the products read them.
struct x_unit {
  int8_t q[unit_columns];
  float scale;
  float scaled_sum;    // scale * sum of q
  int16_t sums[2];     // of q, per half
  int32_t correction;  // the sum of q times what the weights' numbers are stored too high
};

/// What is added to the numbers of a type to store them without sign.
template <dtype T>
constexpr int32_t offset_of() {
  switch (T) {
    case dtype::q8_0:
      return 128;
    case dtype::q4_0:
      return 8;
    case dtype::q5_0:
      return 16;
    default:
      return 0;  // q6_k's 32 is times its scales
  }
}

template <dtype T>
constexpr bool has_fifth_bit() {
  return T == dtype::q5_0 || T == dtype::q5_1 || T == dtype::q5_k;
}
template <dtype T>
constexpr bool has_minimum() {
  return T == dtype::q4_1 || T == dtype::q5_1 || T == dtype::q4_k || T == dtype::q5_k;
}

/// Unit u of a panel: its scales and, for the K types, its block's header.
struct unit_place {
  const uint8_t* unit;
  const uint8_t* header;
};
template <dtype T>
inline unit_place find_unit(const uint8_t* panel, uint32_t u) {
  constexpr uint32_t per_block = block_elements(T) / unit_columns;
  const uint8_t* block = panel + size_t{u / per_block} * panel_block_bytes(T);
  return {block + unit_of(T).header_bytes + u % per_block * unit_bytes(T), block};
}

template <dtype T>
inline lanes scales_of(unit_place at) {
  if constexpr (T == dtype::q4_k || T == dtype::q5_k) {
    return mul(from_f16((const uint16_t*)at.header), to_float(int_from_uint8(at.unit)));
  } else if constexpr (T == dtype::q6_k) {
    return from_f16((const uint16_t*)at.header);
  } else {
    return from_f16((const uint16_t*)at.unit);
  }
}
/// What is added to each number times its scale.
template <dtype T>
inline lanes minimums_of(unit_place at) {
  if constexpr (T == dtype::q4_k || T == dtype::q5_k) {
    lanes step = mul(set1(-1.0f), from_f16((const uint16_t*)at.header + 16));
    return mul(step, to_float(int_from_uint8(at.unit + 16)));
  } else {
    return from_f16((const uint16_t*)at.unit + 16);
  }
}

inline void load_vectors(const uint8_t* p, byte_lanes (&w)[8]) {
  for (int g = 0; g < 8; g++) w[g] = load_bytes(p + 64 * g);
}
inline void load_halves(const uint8_t* p, byte_lanes (&w)[8]) {
  for (int g = 0; g < 4; g++) {
    byte_lanes both = load_bytes(p + 64 * g);
    w[g] = low_halves(both);
    w[g + 4] = high_halves(both);
  }
}
inline void add_fifth_bits(const uint8_t* p, byte_lanes (&w)[8]) {
  byte_lanes h = load_bytes(p);
  w[0] = with_fifth_bit<0>(w[0], h), w[1] = with_fifth_bit<1>(w[1], h);
  w[2] = with_fifth_bit<2>(w[2], h), w[3] = with_fifth_bit<3>(w[3], h);
  w[4] = with_fifth_bit<4>(w[4], h), w[5] = with_fifth_bit<5>(w[5], h);
  w[6] = with_fifth_bit<6>(w[6], h), w[7] = with_fifth_bit<7>(w[7], h);
}
inline void add_two_bits(const uint8_t* p, byte_lanes (&w)[8]) {
  for (int half = 0; half < 2; half++) {
    byte_lanes h = load_bytes(p + 64 * half);
    byte_lanes* v = w + 4 * half;
    v[0] = with_two_bits<0>(v[0], h), v[1] = with_two_bits<1>(v[1], h);
    v[2] = with_two_bits<2>(v[2], h), v[3] = with_two_bits<3>(v[3], h);
  }
}

/// The numbers of a unit of up to 6 bits.
template <dtype T>
inline void load_numbers(unit_place at, byte_lanes (&w)[8]) {
  constexpr unit_facts f = unit_of(T);
  load_halves(at.unit + f.scale_bytes + f.high_bytes, w);
  if constexpr (has_fifth_bit<T>()) add_fifth_bits(at.unit + f.scale_bytes, w);
  if constexpr (T == dtype::q6_k) add_two_bits(at.unit + f.scale_bytes, w);
}

/// What all rows of x share.
template <dtype T>
struct prepared_unit {
  lanes scale, minimum;
  byte_lanes w[8];
};
template <>
struct prepared_unit<dtype::q8_0> {
  lanes scale;
  signed_unit w;
};
template <>
struct prepared_unit<dtype::q6_k> {
  lanes scale;
  byte_lanes w[8];
  half_scales halves;
};

template <dtype T>
inline prepared_unit<T> prepare_unit(unit_place at) {
  prepared_unit<T> u;
  u.scale = scales_of<T>(at);
  if constexpr (T == dtype::q8_0) {
    byte_lanes flipped[8];
    load_vectors(at.unit + unit_of(T).scale_bytes, flipped);
    u.w = prepare_signed(flipped);
  } else {
    load_numbers<T>(at, u.w);
  }
  if constexpr (T == dtype::q6_k) u.halves = prepare_scales((const int8_t*)at.unit);
  if constexpr (has_minimum<T>()) u.minimum = minimums_of<T>(at);
  return u;
}

/// The exact integer products of one row of x.
template <dtype T>
inline int_lanes dot(const prepared_unit<T>& u, const x_unit& x) {
  if constexpr (T == dtype::q8_0) {
    return dot_signed(u.w, x.q, x.correction);
  } else if constexpr (T == dtype::q6_k) {
    int_lanes offsets = pair_products(u.halves.times_32, words_pair(x.sums));
    return int_sub(dot_6_bits(u.w, u.halves, x.q), offsets);
  } else if constexpr (offset_of<T>() != 0) {
    int_lanes sum = has_fifth_bit<T>() ? dot_5_bits(u.w, x.q) : dot_4_bits(u.w, x.q);
    return int_add(sum, int_set1(x.correction));
  } else {
    return has_fifth_bit<T>() ? dot_5_bits(u.w, x.q) : dot_4_bits(u.w, x.q);
  }
}

/// sum + unit * x: the integer sum times both scales, then the minimum times x's sum, each one
/// fused multiply-add.
template <dtype T>
inline lanes add_row(const prepared_unit<T>& u, const x_unit& x, lanes sum) {
  sum = fma(to_float(dot(u, x)), mul(u.scale, set1(x.scale)), sum);
  if constexpr (has_minimum<T>()) sum = fma(u.minimum, set1(x.scaled_sum), sum);
  return sum;
}

/// sums[r] += unit * x[r]; two rows at a time, since one row is a long chain of instructions.
template <dtype T>
inline void add_unit(unit_place at, const x_unit* x, uint32_t rows, lanes* sums) {
  prepared_unit<T> u = prepare_unit<T>(at);
  uint32_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    lanes a = add_row(u, x[r], sums[r]), b = add_row(u, x[r + 1], sums[r + 1]);
    sums[r] = a;
    sums[r + 1] = b;
  }
  if (r < rows) sums[r] = add_row(u, x[r], sums[r]);
}

}  // namespace
}  // namespace lethe
