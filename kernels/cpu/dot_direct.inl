// Integer products of units (32 columns, 16 rows) where four products of bytes are summed into
// 32 bits at once (four_products).

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu_row.hpp"
#include "kernels/x_unit.hpp"

namespace lethe {
namespace {

/// Panels and rows of x whose sums are in registers together, integers and floats: a product waits
/// for the last one of its sum, so there must be many, and each four of x serve all panels. Of
/// sixteen registers of half the lanes integers need twelve. Plain arrays have none.
inline constexpr bool many_registers = lane_registers == 32, few_registers = lane_registers == 8;
inline constexpr uint32_t tile_panels_quant = many_registers ? 4 : 1;
inline constexpr uint32_t tile_rows = many_registers ? 3 : few_registers ? 6 : 2;
inline constexpr bool float_sums_stay = !few_registers;  // in registers, unit after unit
/// Rows that go straight from memory, tile after tile of x; of a tile; of these in registers; and
/// panels that go together then: of four the compiler keeps too much at once.
inline constexpr uint32_t stream_rows = lane_registers != 0 ? x_few_rows : tile_rows;
inline constexpr uint32_t few_rows = few_registers ? 3 * stream_rows : stream_rows;
inline constexpr uint32_t rows_together = few_registers ? tile_rows : stream_rows;
constexpr uint32_t panels_from_memory(uint32_t rows) {
  if (many_registers) return rows > 2 ? 2 : 4;
  return few_registers && rows <= 2 ? 4 / rows : 1;
}
/// Rows of numbers of 6 bits, whose halves have a sum each.
inline constexpr uint32_t rows_of_6_bits = few_registers ? 3 : 8;

/// Whether products may take weights out of memory one by one (unit_in_memory): made ready
/// together, those of few rows push sums out of the registers, and those of many are a copy.
inline constexpr bool read_late = lane_registers != 0;

/// sums += the products of vectors [first, first + 4): 16 columns. W is eight vectors, or gives
/// them when asked.
template <uint32_t first, class W, uint32_t P, uint32_t R>
[[gnu::always_inline]] inline void add_half(const W* const (&w)[P], const x_unit* x,
                                            int_lanes (&sums)[P][R]) {
#pragma GCC unroll 4
  for (uint32_t g = first; g < first + 4; g++) {
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; r++) {
      byte_lanes four = four_bytes(x[r].q + 4 * g);
#pragma GCC unroll 4
      for (uint32_t p = 0; p < P; p++) sums[p][r] = four_products(sums[p][r], (*w[p])[g], four);
    }
  }
}
/// Of a tile, whose weights the compiler would else load again for each row.
template <uint32_t first, class W, uint32_t R>
[[gnu::always_inline]] inline void add_half(const W* const (&w)[tile_panels_quant], const x_unit* x,
                                            int_lanes (&sums)[tile_panels_quant][R]) {
#pragma GCC unroll 4
  for (uint32_t g = first; g < first + 4; g++) {
    byte_lanes kept[tile_panels_quant];
#pragma GCC unroll 4
    for (uint32_t p = 0; p < tile_panels_quant; p++) keep(kept[p] = (*w[p])[g]);
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; r++) {
      byte_lanes four = four_bytes(x[r].q + 4 * g);
#pragma GCC unroll 4
      for (uint32_t p = 0; p < tile_panels_quant; p++) {
        sums[p][r] = four_products(sums[p][r], kept[p], four);
      }
    }
  }
}

/// From product_start on, of numbers without sign, stored with an offset or without; `bits` is for
/// instruction sets whose sums are narrow.
template <uint32_t bits, int32_t offset, uint32_t P, uint32_t R, class W>
[[gnu::always_inline]] inline void dot_unsigned(const W* const (&w)[P], const x_unit* x,
                                                int_lanes (&sums)[P][R]) {
#pragma GCC unroll 8
  for (uint32_t r = 0; r < R; r++) {
    int_lanes start = int_set1(start_for<offset>(x[r]));
#pragma GCC unroll 4
    for (uint32_t p = 0; p < P; p++) sums[p][r] = start;
  }
  add_half<0>(w, x, sums);
  add_half<4>(w, x, sums);
}

/// Scales of the two half units, ready to multiply their sums.
struct half_scales {
  lanes first, second;
};
[[gnu::always_inline]] inline half_scales prepare_scales(const int8_t* p) {
  word_lanes both = words_from_int8(p);
  return {to_float(first_words(both)), to_float(second_words(both))};
}

/// Numbers of 6 bits, stored 32 too high, each times its half's scale: below 2^24, so that floats
/// are exact. Of rows from `begin` on.
template <uint32_t P, uint32_t R, uint32_t begin = 0>
[[gnu::always_inline]] inline void dot_6_bits(const byte_lanes (*const (&w)[P])[8],
                                              const half_scales* const (&s)[P], const x_unit* x,
                                              lanes (&sums)[P][R]) {
  constexpr uint32_t count = R - begin < rows_of_6_bits ? R - begin : rows_of_6_bits;
  int_lanes first[P][count], second[P][count];
#pragma GCC unroll 8
  for (uint32_t r = 0; r < count; r++) {
    const int16_t* of_halves = x[begin + r].sums;
    for (uint32_t p = 0; p < P; p++) {
      first[p][r] = int_set1(-32 * of_halves[0]);
      second[p][r] = int_set1(-32 * of_halves[1]);
    }
  }
  add_half<0>(w, x + begin, first);
  add_half<4>(w, x + begin, second);
#pragma GCC unroll 8
  for (uint32_t r = 0; r < count; r++) {
    for (uint32_t p = 0; p < P; p++) {
      lanes of_second = mul(to_float(second[p][r]), s[p]->second);
      sums[p][begin + r] = fma(to_float(first[p][r]), s[p]->first, of_second);
    }
  }
  if constexpr (begin + count < R) dot_6_bits<P, R, begin + count>(w, s, x, sums);
}

/// Numbers of 8 bits with sign, flipped to 0..255: too high by 128.
using signed_numbers = byte_lanes[8];
[[gnu::always_inline]] inline void prepare_signed(const byte_lanes (&flipped)[8],
                                                  signed_numbers& w) {
  for (int g = 0; g < 8; g++) w[g] = flipped[g];
}
template <uint32_t P, uint32_t R, class W>
[[gnu::always_inline]] inline void dot_signed(const W* const (&w)[P], const x_unit* x,
                                              int_lanes (&sums)[P][R]) {
  dot_unsigned<8, 128, P, R>(w, x, sums);
}

/// Four numbers of sixteen keys with sign, flipped as weights are; a sum begins with a correction.
struct key_numbers {
  byte_lanes flipped;
};
inline key_numbers key_numbers_at(const int8_t* p) {
  return {bytes_flip_top(load_bytes(reinterpret_cast<const uint8_t*>(p)))};
}
inline int32_t key_correction(const int8_t* query, uint32_t count) {
  int32_t sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += query[i];
  return -128 * sum;
}
inline int_lanes add_key_products(int_lanes sum, const key_numbers& k, byte_lanes query) {
  return four_products(sum, k.flipped, query);
}

/// Values' weights are numbers of 15 bits. As bytes, since four bytes are multiplied with four
/// values as they lie: the high ones of a tile, and behind them the low ones.
inline void store_weights(int8_t* to, const int_lanes (&of_tile)[attention_tile / 16]) {
  store_15_bits(to, to + attention_tile, of_tile);
}
struct four_weights {
  byte_lanes high, low;
};
inline four_weights weights_at(const int8_t* from) {
  return {four_bytes(from), four_bytes(from + attention_tile)};
}
using value_numbers = byte_lanes;
inline value_numbers value_numbers_at(const int8_t* p) {
  return load_bytes(reinterpret_cast<const uint8_t*>(p));
}
struct value_sums {
  int_lanes high, low;
  void add(const value_numbers& values, const four_weights& w) {
    high = four_products(high, w.high, values);
    low = four_products(low, w.low, values);
  }
  /// Rounded once: of a tile both fit 24 bits.
  lanes all() const { return fma(to_float(high), set1(256.0f), to_float(low)); }
};
inline value_sums no_values() { return {int_zero(), int_zero()}; }
/// Queries whose sums are in registers together, and how far apart fours of weights lie.
inline constexpr uint32_t value_rows = 2, four_weights_bytes = 4;

}  // namespace
}  // namespace lethe
