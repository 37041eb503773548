// A unit of quantized weights (32 columns, 16 rows) in registers, and its share of a product.

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "kernels/panels.hpp"
#include "kernels/x_unit.hpp"

namespace lethe {
namespace {

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
[[gnu::always_inline]] inline unit_place find_unit(const uint8_t* panel, uint32_t u) {
  constexpr uint32_t per_block = block_elements(T) / unit_columns;
  const uint8_t* block = panel + size_t{u / per_block} * panel_block_bytes(T);
  return {block + unit_of(T).header_bytes + u % per_block * unit_bytes(T), block};
}
/// Where the bytes of unit u begin, a header before it included.
template <dtype T>
[[gnu::always_inline]] inline const uint8_t* begin_of_unit(const uint8_t* panel, uint32_t u) {
  unit_place at = find_unit<T>(panel, u);
  return u % (block_elements(T) / unit_columns) == 0 ? at.header : at.unit;
}

template <dtype T>
[[gnu::always_inline]] inline lanes scales_of(unit_place at) {
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
[[gnu::always_inline]] inline lanes minimums_of(unit_place at) {
  if constexpr (T == dtype::q4_k || T == dtype::q5_k) {
    lanes step = mul(set1(-1.0f), from_f16((const uint16_t*)at.header + 16));
    return mul(step, to_float(int_from_uint8(at.unit + 16)));
  } else {
    return from_f16((const uint16_t*)at.unit + 16);
  }
}

[[gnu::always_inline]] inline void load_vectors(const uint8_t* p, byte_lanes (&w)[8]) {
  for (int g = 0; g < 8; g++) w[g] = load_bytes(p + 64 * g);
}
[[gnu::always_inline]] inline void load_halves(const uint8_t* p, byte_lanes (&w)[8]) {
  for (int g = 0; g < 4; g++) {
    byte_lanes both = load_bytes(p + 64 * g);
    w[g] = low_halves(both);
    w[g + 4] = high_halves(both);
  }
}
[[gnu::always_inline]] inline void add_fifth_bits(const uint8_t* p, byte_lanes (&w)[8]) {
  byte_lanes h = load_bytes(p);
  w[0] = with_fifth_bit<0>(w[0], h), w[1] = with_fifth_bit<1>(w[1], h);
  w[2] = with_fifth_bit<2>(w[2], h), w[3] = with_fifth_bit<3>(w[3], h);
  w[4] = with_fifth_bit<4>(w[4], h), w[5] = with_fifth_bit<5>(w[5], h);
  w[6] = with_fifth_bit<6>(w[6], h), w[7] = with_fifth_bit<7>(w[7], h);
}
[[gnu::always_inline]] inline void add_two_bits(const uint8_t* p, byte_lanes (&w)[8]) {
  for (int half = 0; half < 2; half++) {
    byte_lanes h = load_bytes(p + 64 * half);
    byte_lanes* v = w + 4 * half;
    v[0] = with_two_bits<0>(v[0], h), v[1] = with_two_bits<1>(v[1], h);
    v[2] = with_two_bits<2>(v[2], h), v[3] = with_two_bits<3>(v[3], h);
  }
}

/// The numbers of a unit of up to 6 bits.
template <dtype T>
[[gnu::always_inline]] inline void load_numbers(unit_place at, byte_lanes (&w)[8]) {
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
  signed_numbers w;
};
template <>
struct prepared_unit<dtype::q6_k> {
  lanes scale;
  byte_lanes w[8];
  half_scales halves;
};

/// Numbers where they lie, of types that have all bits together.
template <dtype T>
struct numbers_in_memory {
  const uint8_t* first;
  [[gnu::always_inline]] byte_lanes operator[](uint32_t g) const {
    if constexpr (T == dtype::q8_0) return load_bytes(first + 64 * g);
    const uint8_t* p = first;
    if (g >= 4) asm("" : "+r"(p));  // else the compiler keeps what it loaded for g - 4
    byte_lanes both = load_bytes(p + g % 4 * 64);
    return g < 4 ? low_halves(both) : high_halves(both);
  }
};
/// A unit whose numbers stay there until they are multiplied.
template <dtype T>
struct unit_in_memory {
  lanes scale, minimum;
  numbers_in_memory<T> w;
};
template <dtype T>
[[gnu::always_inline]] inline void prepare_unit(unit_place at, unit_in_memory<T>& u) {
  u.scale = scales_of<T>(at);
  u.w.first = at.unit + unit_of(T).scale_bytes;
  if constexpr (has_minimum<T>()) u.minimum = minimums_of<T>(at);
}

template <dtype T>
[[gnu::always_inline]] inline void prepare_unit(unit_place at, prepared_unit<T>& u) {
  u.scale = scales_of<T>(at);
  if constexpr (T == dtype::q8_0) {
    byte_lanes flipped[8];
    load_vectors(at.unit + unit_of(T).scale_bytes, flipped);
    prepare_signed(flipped, u.w);
  } else {
    load_numbers<T>(at, u.w);
  }
  if constexpr (T == dtype::q6_k) u.halves = prepare_scales((const int8_t*)at.unit);
  if constexpr (has_minimum<T>()) u.minimum = minimums_of<T>(at);
}

/// What few rows are multiplied with, once. Numbers of 8 bits are (nearly) ready where they lie.
template <dtype T>
using passing_unit =
    std::conditional_t<(read_late || T == dtype::q8_0) && unit_of(T).high_bytes == 0,
                       unit_in_memory<T>, prepared_unit<T>>;
/// What tile after tile is multiplied with: numbers of 8 bits where they lie if that costs nothing,
/// those of 4 bits if besides pipes that don't multiply can take them apart for each tile.
template <dtype T, bool apart_beside>
using ready_unit = std::conditional_t<read_late && (T == dtype::q8_0 || apart_beside),
                                      passing_unit<T>, prepared_unit<T>>;

/// Integer products; those of 6 bits, which may be greater than a start allows, as floats, exactly.
template <dtype T>
using unit_sum = std::conditional_t<T == dtype::q6_k, lanes, int_lanes>;

/// The products of P panels' units and R rows of x, exact, from product_start on.
template <dtype T, class Unit, uint32_t P, uint32_t R>
[[gnu::always_inline]] inline void dot_tile(const Unit* const (&u)[P], const x_unit* x,
                                            unit_sum<T> (&sums)[P][R]) {
  const decltype(u[0]->w)* w[P];
  for (uint32_t p = 0; p < P; p++) w[p] = &u[p]->w;
  if constexpr (T == dtype::q6_k) {
    const half_scales* halves[P];
    for (uint32_t p = 0; p < P; p++) halves[p] = &u[p]->halves;
    dot_6_bits<P, R>(w, halves, x, sums);
  } else if constexpr (T == dtype::q8_0) {
    dot_signed<P, R>(w, x, sums);
  } else {
    dot_unsigned<has_fifth_bit<T>() ? 5 : 4, offset_of<T>(), P, R>(w, x, sums);
  }
}

/// What scaled_product adds: takes the start off again.
template <dtype T>
[[gnu::always_inline]] inline lanes scaled_start(lanes scale) {
  static_assert(__builtin_bit_cast(int32_t, product_zero) == product_start);
  return T == dtype::q6_k ? zero() : mul(scale, set1(-product_zero));
}
/// A sum of products times the scale of its weights, rounded once; a zero has no sign.
template <dtype T>
[[gnu::always_inline]] inline lanes scaled_product(unit_sum<T> sum, lanes scale, lanes start) {
  if constexpr (T == dtype::q6_k)
    return fma(sum, scale, start);
  else
    return fma(float_of_bits(sum), scale, start);
}

/// sums[p * R + r] = before[p * R + r] + panel p * row r for one unit: the integer sum times the
/// weights' scale, that times x's, then the minimum times x's sum, each one fused multiply-add.
template <dtype T, uint32_t P, uint32_t R, class Unit>
[[gnu::always_inline]] inline void add_unit(const Unit* const (&u)[P], const x_unit* x,
                                            const lanes* before, lanes* sums) {
  unit_sum<T> products[P][R];
  dot_tile<T>(u, x, products);
  lanes scales[R];
#pragma GCC unroll 8
  for (uint32_t r = 0; r < R; r++) scales[r] = set1(x[r].scale);
#pragma GCC unroll 4
  for (uint32_t p = 0; p < P; p++) {
    lanes scale = u[p]->scale, start = scaled_start<T>(scale);
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; r++) {
      lanes sum = before[p * R + r];
      sum = fma(scaled_product<T>(products[p][r], scale, start), scales[r], sum);
      if constexpr (has_minimum<T>()) sum = fma(u[p]->minimum, set1(x[r].scaled_sum), sum);
      sums[p * R + r] = sum;
    }
  }
}

}  // namespace
}  // namespace lethe
