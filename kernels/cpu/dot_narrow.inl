// Integer products of a unit (32 columns, 16 rows) where the CPU multiplies bytes into 16 bits
// (vpmaddubsw, vpmaddwd). A pair of products of numbers below 2^b is at most 2 * (2^b - 1) * 127:
// 3810, 7874, 16002 for b = 4, 5, 6, so 8, 4, 2 of them fit 16 bits.

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu_row.hpp"
#include "kernels/x_unit.hpp"

namespace lethe {
namespace {

/// Panels and rows of x that go together, as registers allow: each vector of weights serves all
/// rows.
inline constexpr uint32_t tile_panels_quant = 1, tile_rows = 6;
inline constexpr bool float_sums_stay = false;  // in registers; integers need them
inline constexpr bool read_late = false;        // several products are summed in 16 bits
/// Rows that go straight from memory, tile after tile of x; of a tile; of these in registers.
inline constexpr uint32_t few_rows = 16, stream_rows = x_few_rows, rows_together = tile_rows;
constexpr uint32_t panels_from_memory(uint32_t) { return 1; }

/// The products of vectors [first, first + count) with x, summed in 16 bits.
template <uint32_t first, uint32_t count, uint32_t P, uint32_t R>
inline void sum_words(const byte_lanes (*const (&w)[P])[8], const x_unit* x,
                      word_lanes (&sums)[P][R]) {
#pragma GCC unroll 8
  for (uint32_t g = first; g < first + count; g++) {
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; r++) {
      byte_lanes four = four_bytes(x[r].q + 4 * g);
#pragma GCC unroll 4
      for (uint32_t p = 0; p < P; p++) {
        word_lanes products = byte_products((*w[p])[g], four);
        sums[p][r] = g == first ? products : words_add(sums[p][r], products);
      }
    }
  }
}

/// From product_start on, of numbers of 4 or 5 bits, with or without an offset.
template <uint32_t bits, int32_t offset, uint32_t P, uint32_t R>
inline void dot_unsigned(const byte_lanes (*const (&w)[P])[8], const x_unit* x,
                         int_lanes (&sums)[P][R]) {
  constexpr uint32_t fit = bits == 4 ? 8 : 4;
  word_lanes one = words_set1(1), words[P][R];
  sum_words<0, fit>(w, x, words);
#pragma GCC unroll 8
  for (uint32_t r = 0; r < R; r++) {
    int_lanes start = int_set1(start_for<offset>(x[r]));
    for (uint32_t p = 0; p < P; p++) sums[p][r] = int_add(start, pair_products(words[p][r], one));
  }
  if constexpr (fit == 8) return;
  sum_words<8 - fit, fit>(w, x, words);
#pragma GCC unroll 8
  for (uint32_t r = 0; r < R; r++) {
    for (uint32_t p = 0; p < P; p++) {
      sums[p][r] = int_add(sums[p][r], pair_products(words[p][r], one));
    }
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

/// The sums of vectors [g, g + 2), each pair times its factors.
template <uint32_t g, uint32_t P, uint32_t R>
inline void add_two(const byte_lanes (*const (&w)[P])[8], const x_unit* x,
                    const word_lanes (&factors)[P], int_lanes (&sums)[P][R]) {
#pragma GCC unroll 8
  for (uint32_t r = 0; r < R; r++) {
    byte_lanes four = four_bytes(x[r].q + 4 * g), next = four_bytes(x[r].q + 4 * g + 4);
#pragma GCC unroll 4
    for (uint32_t p = 0; p < P; p++) {
      word_lanes words =
          words_add(byte_products((*w[p])[g], four), byte_products((*w[p])[g + 1], next));
      sums[p][r] = int_add(sums[p][r], pair_products(words, factors[p]));
    }
  }
}

/// Numbers of 6 bits, stored 32 too high, each times its half's scale.
template <uint32_t P, uint32_t R>
inline void dot_6_bits(const byte_lanes (*const (&w)[P])[8], const half_scales* const (&s)[P],
                       const x_unit* x, lanes (&sums)[P][R]) {
  word_lanes first[P], second[P];
  int_lanes whole[P][R];
  for (uint32_t p = 0; p < P; p++) first[p] = s[p]->first, second[p] = s[p]->second;
  for (uint32_t i = 0; i < P * R; i++) whole[i / R][i % R] = int_zero();
  add_two<0>(w, x, first, whole);
  add_two<2>(w, x, first, whole);
  add_two<4>(w, x, second, whole);
  add_two<6>(w, x, second, whole);
#pragma GCC unroll 8
  for (uint32_t r = 0; r < R; r++) {
    word_lanes of_halves = words_pair(x[r].sums);
    for (uint32_t p = 0; p < P; p++) {
      int_lanes offsets = pair_products(s[p]->times_32, of_halves);
      sums[p][r] = to_float(int_sub(whole[p][r], offsets));
    }
  }
}

/// Four numbers of 8 bits with sign of each lane. Bytes are multiplied without sign, so x takes
/// theirs on. The largest pair, 2 * 128 * 127, just fits.
struct signed_four {
  byte_lanes numbers, absolute;
};
[[gnu::always_inline]] inline signed_four signed_from(byte_lanes numbers) {
  return {numbers, bytes_absolute(numbers)};
}
[[gnu::always_inline]] inline int_lanes signed_products(const signed_four& w, byte_lanes x) {
  return pair_products(byte_products(w.absolute, bytes_turned_by(x, w.numbers)), words_set1(1));
}

/// Of a unit: ready, or flipped yet where they lie.
using signed_numbers = signed_four[8];
inline void prepare_signed(const byte_lanes (&flipped)[8], signed_numbers& w) {
#pragma GCC unroll 8
  for (int g = 0; g < 8; g++) w[g] = signed_from(bytes_flip_top(flipped[g]));
}
[[gnu::always_inline]] inline signed_four four_of(const signed_numbers& w, uint32_t g) {
  return w[g];
}
template <class W>
[[gnu::always_inline]] inline signed_four four_of(const W& w, uint32_t g) {
  return signed_from(bytes_flip_top(w[g]));
}
/// From product_start on.
template <uint32_t P, uint32_t R, class W>
[[gnu::always_inline]] inline void dot_signed(const W* const (&w)[P], const x_unit* x,
                                              int_lanes (&sums)[P][R]) {
#pragma GCC unroll 8
  for (uint32_t g = 0; g < 8; g++) {
#pragma GCC unroll 4
    for (uint32_t p = 0; p < P; p++) {
      signed_four four = four_of(*w[p], g);
#pragma GCC unroll 8
      for (uint32_t r = 0; r < R; r++) {
        int_lanes products = signed_products(four, four_bytes(x[r].q + 4 * g));
        sums[p][r] = int_add(g == 0 ? int_set1(product_start) : sums[p][r], products);
      }
    }
  }
}

/// Four numbers of sixteen keys.
using key_numbers = signed_four;
inline key_numbers key_numbers_at(const int8_t* p) {
  return signed_from(load_bytes(reinterpret_cast<const uint8_t*>(p)));
}
inline int32_t key_correction(const int8_t*, uint32_t) { return 0; }
inline int_lanes add_key_products(int_lanes sum, const key_numbers& k, byte_lanes query) {
  return int_add(sum, signed_products(k, query));
}

/// Values' weights are numbers of 15 bits: words, in the order that pairs of values come in.
inline void store_weights(int8_t* to, const int_lanes (&of_tile)[attention_tile / 16]) {
  int16_t* words = reinterpret_cast<int16_t*>(to);
  for (uint32_t v = 0; v < attention_tile / 16; v++) {
    store_words_crossed(words + 16 * v, of_tile[v]);
  }
}
struct four_weights {
  word_lanes even, odd;
};
inline four_weights weights_at(const int8_t* from) {
  const int16_t* four = reinterpret_cast<const int16_t*>(from);
  return {words_pair(four), words_pair(four + 2)};
}
struct value_numbers {
  word_lanes even, odd;
};
inline value_numbers value_numbers_at(const int8_t* p) {
  byte_lanes bytes = load_bytes(reinterpret_cast<const uint8_t*>(p));
  return {words_of_even_bytes(bytes), words_of_odd_bytes(bytes)};
}
struct value_sums {
  int_lanes sum;
  void add(const value_numbers& values, const four_weights& w) {
    sum = int_add(sum, pair_products(values.even, w.even));
    sum = int_add(sum, pair_products(values.odd, w.odd));
  }
  lanes all() const { return to_float(sum); }
};
inline value_sums no_values() { return {int_zero()}; }
/// Queries whose sums are in registers together, and how far apart fours of weights lie.
inline constexpr uint32_t value_rows = 4, four_weights_bytes = 8;

}  // namespace
}  // namespace lethe
