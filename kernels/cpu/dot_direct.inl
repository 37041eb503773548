// Integer products of a unit (32 columns, 16 rows) where four products of bytes are summed into
// 32 bits at once (four_products).

#include <stddef.h>
#include <stdint.h>

namespace lethe {
namespace {

/// 16 columns: four vectors. Two chains, since one product waits for the last.
inline int_lanes dot_half(int_lanes c, const byte_lanes* w, const int8_t* x) {
  int_lanes a = four_products(c, w[0], x), b = four_products(int_zero(), w[1], x + 4);
  a = four_products(a, w[2], x + 8);
  b = four_products(b, w[3], x + 12);
  return int_add(a, b);
}
inline int_lanes dot_unit(int_lanes c, const byte_lanes (&w)[8], const int8_t* x) {
  return int_add(dot_half(c, w, x), dot_half(int_zero(), w + 4, x + 16));
}

/// The dot products of 32 numbers of 4 bits with x.
inline int_lanes dot_4_bits(const byte_lanes (&w)[8], const int8_t* x) {
  return dot_unit(int_zero(), w, x);
}
inline int_lanes dot_5_bits(const byte_lanes (&w)[8], const int8_t* x) {
  return dot_unit(int_zero(), w, x);
}

/// Scales of the two half units, ready to multiply their sums.
struct half_scales {
  word_lanes times_32;
  int_lanes first, second;
};
inline half_scales prepare_scales(const int8_t* p) {
  word_lanes both = words_from_int8(p);
  return {words_shift<5>(both), first_words(both), second_words(both)};
}

/// Numbers of 6 bits, each times its half's scale; without the offset of 32.
inline int_lanes dot_6_bits(const byte_lanes (&w)[8], const half_scales& s, const int8_t* x) {
  return int_add(int_mul(s.first, dot_half(int_zero(), w, x)),
                 int_mul(s.second, dot_half(int_zero(), w + 4, x + 16)));
}

/// Numbers of 8 bits with sign, flipped to 0..255; `correction` is -128 * the sum of x.
struct signed_unit {
  byte_lanes flipped[8];
};
inline signed_unit prepare_signed(const byte_lanes (&flipped)[8]) {
  signed_unit u;
  for (int g = 0; g < 8; g++) u.flipped[g] = flipped[g];
  return u;
}
inline int_lanes dot_signed(const signed_unit& u, const int8_t* x, int32_t correction) {
  return dot_unit(int_set1(correction), u.flipped, x);
}

}  // namespace
}  // namespace lethe
