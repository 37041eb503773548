// Integer products of a unit (32 columns, 16 rows) where the CPU multiplies bytes into 16 bits
// (vpmaddubsw, vpmaddwd). A pair of products of numbers below 2^b is at most 2 * (2^b - 1) * 127:
// 3810, 7874, 16002 for b = 4, 5, 6, so 8, 4, 2 of them fit 16 bits.

#include <stddef.h>
#include <stdint.h>

#include "kernels/x_unit.hpp"

namespace lethe {
namespace {

/// Panels and rows of x that go together: there are too few registers for more.
inline constexpr uint32_t tile_panels_quant = 1, tile_rows = 2;

inline word_lanes products_of(byte_lanes w, const int8_t* x) {
  return byte_products(w, four_bytes(x));
}
inline word_lanes products_of_two(const byte_lanes* w, const int8_t* x) {
  return words_add(products_of(w[0], x), products_of(w[1], x + 4));
}
inline word_lanes products_of_four(const byte_lanes* w, const int8_t* x) {
  return words_add(products_of_two(w, x), products_of_two(w + 2, x + 8));
}

/// The dot products of 32 numbers of 4 or 5 bits with x.
template <uint32_t bits>
inline int_lanes dot_small(const byte_lanes (&w)[8], const int8_t* x) {
  word_lanes one = words_set1(1), low = products_of_four(w, x),
             high = products_of_four(w + 4, x + 16);
  if constexpr (bits == 4) return pair_products(words_add(low, high), one);
  return int_add(pair_products(low, one), pair_products(high, one));
}

/// Numbers of 4 or 5 bits, with or without an offset.
template <uint32_t bits, int32_t offset, uint32_t P, uint32_t R>
inline void dot_unsigned(const byte_lanes (*const (&w)[P])[8], const x_unit* x,
                         int_lanes (&sums)[P][R]) {
  for (uint32_t i = 0; i < P * R; i++) {
    const x_unit& row = x[i % R];
    int_lanes sum = dot_small<bits>(*w[i / R], row.q);
    if constexpr (offset != 0) sum = int_add(sum, int_set1(correction_for<offset>(row)));
    sums[i / R][i % R] = sum;
  }
}

/// Scales of the two half units, ready to multiply their sums.
struct half_scales {
  word_lanes times_32, first, second;
};
inline half_scales prepare_scales(const int8_t* p) {
  word_lanes both = words_from_int8(p);
  return {words_shift<5>(both), words_first_twice(both), words_second_twice(both)};
}

/// Numbers of 6 bits, each times its half's scale; without the offset of 32.
inline int_lanes dot_6_bits(const byte_lanes (&w)[8], const half_scales& s, const int8_t* x) {
  int_lanes a = pair_products(products_of_two(w, x), s.first);
  int_lanes b = pair_products(products_of_two(w + 2, x + 8), s.first);
  int_lanes c = pair_products(products_of_two(w + 4, x + 16), s.second);
  int_lanes d = pair_products(products_of_two(w + 6, x + 24), s.second);
  return int_add(int_add(a, b), int_add(c, d));
}
template <uint32_t P, uint32_t R>
inline void dot_6_bits(const byte_lanes (*const (&w)[P])[8], const half_scales* const (&s)[P],
                       const x_unit* x, int_lanes (&sums)[P][R]) {
  for (uint32_t i = 0; i < P * R; i++)
    sums[i / R][i % R] = dot_6_bits(*w[i / R], *s[i / R], x[i % R].q);
}

/// Numbers of 8 bits with sign. |w| * (x ^ below) is w * x less |w| where w is below zero
/// (x ^ 255 = -x - 1): those are added back once. The largest pair, 2 * 128 * -128, just fits.
struct signed_numbers {
  byte_lanes absolute[8], below[8];
  int_lanes added;
};
inline void prepare_signed(const byte_lanes (&flipped)[8], signed_numbers& u) {
  u.added = int_zero();
  byte_lanes one = four_bytes((const int8_t*)"\1\1\1\1");
  for (int g = 0; g < 8; g++) {
    byte_lanes w = bytes_flip_top(flipped[g]);
    u.absolute[g] = bytes_absolute(w);
    u.below[g] = bytes_below_zero(w);
    word_lanes sums = byte_products(bytes_and(u.absolute[g], u.below[g]), one);
    u.added = int_add(u.added, pair_products(sums, words_set1(1)));
  }
}
inline int_lanes dot_signed(const signed_numbers& u, const int8_t* x) {
  int_lanes sum = u.added;
  for (int g = 0; g < 8; g++) {
    byte_lanes turned = bytes_xor(four_bytes(x + 4 * g), u.below[g]);
    sum = int_add(sum, pair_products(byte_products(u.absolute[g], turned), words_set1(1)));
  }
  return sum;
}
/// x's correction is for instruction sets that take the flipped numbers.
template <uint32_t P, uint32_t R>
inline void dot_signed(const signed_numbers* const (&w)[P], const x_unit* x,
                       int_lanes (&sums)[P][R]) {
  for (uint32_t i = 0; i < P * R; i++) sums[i / R][i % R] = dot_signed(*w[i / R], x[i % R].q);
}

}  // namespace
}  // namespace lethe
