#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

// Sixteen lanes of float, int32 or four bytes, as one register. The functions have the meaning
// that lanes_reference.hpp writes out, and give the same bits.

namespace lethe {
namespace {

inline constexpr uint32_t lane_registers = 32;
inline constexpr uint32_t tile_panels = 4;
inline constexpr uint32_t one_row_panels = 4;
inline constexpr uint32_t exp_at_once = 4;

struct lanes {
  __m512 v;
};
struct int_lanes {
  __m512i v;
};
struct lane_mask {
  __mmask16 v;
};

inline __mmask16 first_lanes(uint32_t count) {
  return count >= 16 ? __mmask16(0xffff) : __mmask16((1u << count) - 1);
}

inline lanes zero() { return {_mm512_setzero_ps()}; }
inline lanes set1(float x) { return {_mm512_set1_ps(x)}; }
inline lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, lanes a) { _mm512_storeu_ps(p, a.v); }
inline lanes load_partial(const float* p, uint32_t count) {
  return {_mm512_maskz_loadu_ps(first_lanes(count), p)};
}
inline void store_partial(float* p, lanes a, uint32_t count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), a.v);
}

inline lanes fma(lanes a, lanes b, lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline lanes add(lanes a, lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
inline lanes sub(lanes a, lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline lanes mul(lanes a, lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline lanes div(lanes a, lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
inline lanes max(lanes a, lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
inline lanes min(lanes a, lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
inline lanes square_root(lanes a) { return {_mm512_sqrt_ps(a.v)}; }
inline lanes absolute(lanes a) { return {_mm512_abs_ps(a.v)}; }

inline lane_mask less(lanes a, lanes b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
inline lane_mask not_less(lanes a, lanes b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NLT_UQ)}; }
inline lane_mask unordered(lanes a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
inline lane_mask mask_of(uint16_t bits) { return {bits}; }
inline uint32_t bits_of(lane_mask m) { return m.v; }
inline lanes select(lane_mask m, lanes a, lanes b) { return {_mm512_mask_blend_ps(m.v, b.v, a.v)}; }

inline lanes from_bf16(const uint16_t* p) {
  __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
/// Each of two numbers in every lane.
inline void both_bf16(const uint16_t* two, lanes& first, lanes& second) {
  int32_t bits;
  __builtin_memcpy(&bits, two, 4);
  __m512i both = _mm512_set1_epi32(bits);
  first.v = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
  second.v = _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(int32_t(0xffff0000))));
}
/// Of 16 numbers and 16 more one of each by turns: 0, 16, 1, 17, ...
inline __m512i by_turns(__m512i numbers) {
  alignas(64) static constexpr uint16_t order[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                     21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                     11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(order), numbers);
}
inline void interleave_bf16(const uint16_t* both, uint16_t* to) {
  _mm512_storeu_si512(to, by_turns(_mm512_loadu_si512(both)));
}
inline __m512i by_turns(const uint16_t* a, const uint16_t* b) {
  __m512i both = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i*)a));
  return by_turns(_mm512_inserti64x4(both, _mm256_loadu_si256((const __m256i*)b), 1));
}
inline void interleave_bf16(const uint16_t* a, const uint16_t* b, uint16_t* to) {
  _mm512_storeu_si512(to, by_turns(a, b));
}
/// The same as pairs in registers.
inline lanes in_pairs(const uint16_t* both) {
  return {_mm512_castsi512_ps(by_turns(_mm512_loadu_si512(both)))};
}
inline lanes in_pairs(const uint16_t* a, const uint16_t* b) {
  return {_mm512_castsi512_ps(by_turns(a, b))};
}
inline lanes from_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p))};
}
inline void store_bf16(uint16_t* p, lanes a) {
  __m512i bits = _mm512_castps_si512(a.v);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  __m512i chosen = _mm512_srli_epi32(_mm512_mask_blend_epi32(nan, rounded, quiet), 16);
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(chosen));
}

inline int_lanes int_load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
inline void int_store(int32_t* p, int_lanes a) { _mm512_storeu_si512(p, a.v); }
inline int_lanes int_zero() { return {_mm512_setzero_si512()}; }
inline int_lanes int_set1(int32_t x) { return {_mm512_set1_epi32(x)}; }
inline int_lanes int_add(int_lanes a, int_lanes b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline int_lanes int_sub(int_lanes a, int_lanes b) { return {_mm512_sub_epi32(a.v, b.v)}; }
inline int_lanes int_from_int8(const int8_t* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p))};
}
inline int_lanes int_from_uint8(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p))};
}
inline int_lanes round_to_int(lanes a) { return {_mm512_cvtps_epi32(a.v)}; }
inline lanes to_float(int_lanes a) { return {_mm512_cvtepi32_ps(a.v)}; }
inline lanes float_of_bits(int_lanes a) { return {_mm512_castsi512_ps(a.v)}; }
inline void store_int8(int8_t* p, int_lanes a) {
  _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8(a.v));
}
inline void store_15_bits(int8_t* high, int8_t* low, const int_lanes (&a)[4]) {
  __m512i byte = _mm512_set1_epi16(255), seven = _mm512_set1_epi8(127);
  __m512i first = _mm512_packs_epi32(a[0].v, a[1].v), second = _mm512_packs_epi32(a[2].v, a[3].v);
  __m512i lows = _mm512_packus_epi16(_mm512_and_si512(first, byte), _mm512_and_si512(second, byte));
  __m512i highs = _mm512_packus_epi16(_mm512_srli_epi16(first, 8), _mm512_srli_epi16(second, 8));
  // Packs go quarter by quarter: each has four bytes of all a.
  __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(low, _mm512_permutexvar_epi32(order, lows));
  highs = _mm512_and_si512(highs, seven);
  _mm512_storeu_si512(high, _mm512_permutexvar_epi32(order, highs));
}
inline lanes off_whole(lanes a) {
  return {_mm512_reduce_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline lanes times_two_to(lane_mask m, lanes a, lanes n) {
  return {_mm512_maskz_scalef_ps(m.v, a.v, n.v)};
}

inline float sum_of(lanes a) {
  __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float max_of(lanes a) {
  __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
/// Halves, quarters, pairs and lanes of all four are joined at once.
template <class F>
inline void join_four(const lanes (&a)[4], float (&to)[4], F f) {
  auto join_halves = [&](__m512 x, __m512 y) {
    return f(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xee));
  };
  __m512 ab = join_halves(a[0].v, a[1].v), cd = join_halves(a[2].v, a[3].v);
  __m512 all = f(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  all = f(all, _mm512_permute_ps(all, 0xee));
  all = f(all, _mm512_permute_ps(all, 0xf5));
  _mm_storeu_ps(to, _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, all)));
}
inline void sums_of(const lanes (&a)[4], float (&to)[4]) {
  join_four(a, to, [](__m512 x, __m512 y) { return _mm512_add_ps(x, y); });
}
inline void maxima_of(const lanes (&a)[4], float (&to)[4]) {
  join_four(a, to, [](__m512 x, __m512 y) { return _mm512_max_ps(x, y); });
}
inline int32_t int_sum_of(int_lanes a) { return _mm512_reduce_add_epi32(a.v); }

/// r[i] lane j becomes r[j] lane i.
inline void transpose(lanes (&r)[16]) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 4) {  // 4x4 within each 128-bit quarter
    __m512 a = _mm512_unpacklo_ps(r[i].v, r[i + 1].v), b = _mm512_unpackhi_ps(r[i].v, r[i + 1].v);
    __m512 c = _mm512_unpacklo_ps(r[i + 2].v, r[i + 3].v);
    __m512 d = _mm512_unpackhi_ps(r[i + 2].v, r[i + 3].v);
    t[i] = _mm512_shuffle_ps(a, c, 0x44);
    t[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
    t[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
  }
  for (int i = 0; i < 4; i++) {  // then 4x4 of the quarters
    __m512 a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x44);
    __m512 b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xee);
    __m512 c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x44);
    __m512 d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xee);
    r[i].v = _mm512_shuffle_f32x4(a, c, 0x88);
    r[i + 4].v = _mm512_shuffle_f32x4(a, c, 0xdd);
    r[i + 8].v = _mm512_shuffle_f32x4(b, d, 0x88);
    r[i + 12].v = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
}

/// Four bytes per lane, and two int16 per lane.
struct byte_lanes {
  __m512i v;
};
struct word_lanes {
  __m512i v;
};

inline byte_lanes load_bytes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
/// The compiler may not load it again from where it was.
inline void keep(byte_lanes& a) { asm("" : "+v"(a.v)); }
inline byte_lanes low_halves(byte_lanes a) { return {_mm512_and_si512(a.v, _mm512_set1_epi8(15))}; }
inline byte_lanes high_halves(byte_lanes a) { return low_halves({_mm512_srli_epi16(a.v, 4)}); }
/// Shifts are of whole lanes: the mask drops what comes from the neighbour byte.
template <int g>
inline byte_lanes with_fifth_bit(byte_lanes a, byte_lanes h) {
  __m512i moved =
      g < 4 ? _mm512_slli_epi32(h.v, g < 4 ? 4 - g : 0) : _mm512_srli_epi32(h.v, g < 4 ? 0 : g - 4);
  return {_mm512_or_si512(a.v, _mm512_and_si512(moved, _mm512_set1_epi8(0x10)))};
}
template <int g>
inline byte_lanes with_two_bits(byte_lanes a, byte_lanes h) {
  __m512i moved = g < 2 ? _mm512_slli_epi32(h.v, g < 2 ? 4 - 2 * g : 0)
                        : _mm512_srli_epi32(h.v, g < 2 ? 0 : 2 * g - 4);
  return {_mm512_or_si512(a.v, _mm512_and_si512(moved, _mm512_set1_epi8(0x30)))};
}

inline word_lanes words_from_int8(const int8_t* p) {
  return {_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i*)p))};
}
inline word_lanes words_set1(int16_t x) { return {_mm512_set1_epi16(x)}; }
inline word_lanes words_pair(const int16_t* p) {
  int32_t both;
  __builtin_memcpy(&both, p, 4);
  return {_mm512_set1_epi32(both)};
}
template <int bits>
inline word_lanes words_shift(word_lanes a) {
  return {_mm512_slli_epi16(a.v, bits)};
}
inline int_lanes first_words(word_lanes a) {
  return {_mm512_srai_epi32(_mm512_slli_epi32(a.v, 16), 16)};
}
inline int_lanes second_words(word_lanes a) { return {_mm512_srai_epi32(a.v, 16)}; }
inline int_lanes pair_products(word_lanes a, word_lanes b) { return {_mm512_madd_epi16(a.v, b.v)}; }

/// x[0..4) in each lane.
inline byte_lanes four_bytes(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, 4);
  return {_mm512_set1_epi32(four)};
}
/// w[2i] * x[2i] + w[2i+1] * x[2i+1], w without sign, x with; the sum must fit 16 bits.
inline word_lanes byte_products(byte_lanes w, byte_lanes x) {
  return {_mm512_maddubs_epi16(w.v, x.v)};
}
inline word_lanes words_of_even_bytes(byte_lanes a) {
  return {_mm512_srai_epi16(_mm512_slli_epi16(a.v, 8), 8)};
}
inline word_lanes words_of_odd_bytes(byte_lanes a) { return {_mm512_srai_epi16(a.v, 8)}; }
inline void store_words_crossed(int16_t* p, int_lanes a) {
  __m256i words = _mm512_cvtepi32_epi16(a.v);
  words = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(words, 0xd8), 0xd8);
  _mm256_storeu_si256((__m256i*)p, words);
}
inline word_lanes words_add(word_lanes a, word_lanes b) { return {_mm512_add_epi16(a.v, b.v)}; }
inline byte_lanes bytes_less(byte_lanes a, uint8_t b) {
  return {_mm512_sub_epi8(a.v, _mm512_set1_epi8(char(b)))};
}
inline byte_lanes bytes_flip_top(byte_lanes a) {
  return {_mm512_xor_si512(a.v, _mm512_set1_epi8(-128))};
}
/// Of signed bytes, the distance from zero (128 fits).
inline byte_lanes bytes_absolute(byte_lanes a) { return {_mm512_abs_epi8(a.v)}; }
/// Of signed bytes: a, or -a where b is below zero.
inline byte_lanes bytes_turned_by(byte_lanes a, byte_lanes b) {
  return {_mm512_mask_sub_epi8(a.v, _mm512_movepi8_mask(b.v), _mm512_setzero_si512(), a.v)};
}
inline word_lanes words_first_twice(word_lanes a) {
  __m512i low = _mm512_and_si512(a.v, _mm512_set1_epi32(0xffff));
  return {_mm512_or_si512(low, _mm512_slli_epi32(a.v, 16))};
}
inline word_lanes words_second_twice(word_lanes a) {
  return words_first_twice({_mm512_srli_epi32(a.v, 16)});
}

}  // namespace
}  // namespace lethe
