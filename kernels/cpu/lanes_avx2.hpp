#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

// Sixteen lanes of float, int32 or four bytes, as two registers. The functions have the meaning
// that lanes_reference.hpp writes out, and give the same bits.

namespace lethe {
namespace {

inline constexpr uint32_t lane_registers = 8;
inline constexpr uint32_t tile_panels = 1;
inline constexpr uint32_t one_row_panels = 4;
inline constexpr uint32_t exp_at_once = 1;

struct lanes {
  __m256 lo, hi;
};
struct int_lanes {
  __m256i lo, hi;
};
struct lane_mask {
  __m256 lo, hi;
};

/// All bits in the first `count` of eight lanes; count may be negative or above 8.
inline __m256i first_of_eight(int32_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline lanes zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline lanes set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline lanes load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, lanes a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
inline lanes load_partial(const float* p, uint32_t count) {
  return {_mm256_maskload_ps(p, first_of_eight(int32_t(count))),
          _mm256_maskload_ps(p + 8, first_of_eight(int32_t(count) - 8))};
}
inline void store_partial(float* p, lanes a, uint32_t count) {
  _mm256_maskstore_ps(p, first_of_eight(int32_t(count)), a.lo);
  _mm256_maskstore_ps(p + 8, first_of_eight(int32_t(count) - 8), a.hi);
}

inline lanes fma(lanes a, lanes b, lanes c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline lanes add(lanes a, lanes b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline lanes sub(lanes a, lanes b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline lanes mul(lanes a, lanes b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline lanes div(lanes a, lanes b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
inline lanes max(lanes a, lanes b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
inline lanes min(lanes a, lanes b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
inline lanes square_root(lanes a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
inline lanes absolute(lanes a) {
  __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}

inline lane_mask less(lanes a, lanes b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
inline lane_mask not_less(lanes a, lanes b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_NLT_UQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_NLT_UQ)};
}
inline lane_mask unordered(lanes a) {
  return {_mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q), _mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q)};
}
inline lane_mask mask_of(uint16_t bits) {
  __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  __m256i lo = _mm256_set1_epi32(bits & 255), hi = _mm256_set1_epi32(bits >> 8);
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(lo, each), each)),
          _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(hi, each), each))};
}
inline uint32_t bits_of(lane_mask m) {
  return uint32_t(_mm256_movemask_ps(m.lo)) | uint32_t(_mm256_movemask_ps(m.hi)) << 8;
}
inline lanes select(lane_mask m, lanes a, lanes b) {
  return {_mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi)};
}

inline __m256 eight_from_bf16(const uint16_t* p) {
  __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
inline lanes from_bf16(const uint16_t* p) { return {eight_from_bf16(p), eight_from_bf16(p + 8)}; }
inline lanes from_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)),
          _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(p + 8)))};
}
inline __m128i eight_to_bf16(__m256 a) {
  __m256i bits = _mm256_castps_si256(a);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  __m256i chosen = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
}
inline void store_bf16(uint16_t* p, lanes a) {
  _mm_storeu_si128((__m128i*)p, eight_to_bf16(a.lo));
  _mm_storeu_si128((__m128i*)(p + 8), eight_to_bf16(a.hi));
}

inline int_lanes int_load(const int32_t* p) {
  return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)(p + 8))};
}
inline void int_store(int32_t* p, int_lanes a) {
  _mm256_storeu_si256((__m256i*)p, a.lo);
  _mm256_storeu_si256((__m256i*)(p + 8), a.hi);
}
inline int_lanes int_zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline int_lanes int_set1(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline int_lanes int_add(int_lanes a, int_lanes b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
inline int_lanes int_sub(int_lanes a, int_lanes b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
inline int_lanes int_from_int8(const int8_t* p) {
  __m128i bytes = _mm_loadu_si128((const __m128i*)p);
  return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes))};
}
inline int_lanes int_from_uint8(const uint8_t* p) {
  __m128i bytes = _mm_loadu_si128((const __m128i*)p);
  return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes))};
}
inline int_lanes round_to_int(lanes a) {
  return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)};
}
inline lanes to_float(int_lanes a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
inline lanes float_of_bits(int_lanes a) {
  return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)};
}
inline void store_int8(int8_t* p, int_lanes a) {
  // The lowest byte of each int: lanes 0-3 of each half to the left, then joined.
  __m256i pick = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                  -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1);
  __m256i lo = _mm256_shuffle_epi8(a.lo, pick), hi = _mm256_shuffle_epi8(a.hi, pick);
  __m128i low = _mm_or_si128(_mm256_castsi256_si128(lo), _mm256_extracti128_si256(lo, 1));
  __m128i high = _mm_or_si128(_mm256_castsi256_si128(hi), _mm256_extracti128_si256(hi, 1));
  _mm_storeu_si128((__m128i*)p, _mm_unpacklo_epi64(low, high));
}
inline void store_15_bits(int8_t* high, int8_t* low, const int_lanes (&a)[4]) {
  __m256i byte = _mm256_set1_epi16(255), seven = _mm256_set1_epi8(127);
  // Packs go half by half: each has four bytes of both a.
  __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int i = 0; i < 4; i += 2) {
    __m256i first = _mm256_packs_epi32(a[i].lo, a[i].hi);
    __m256i second = _mm256_packs_epi32(a[i + 1].lo, a[i + 1].hi);
    __m256i lows =
        _mm256_packus_epi16(_mm256_and_si256(first, byte), _mm256_and_si256(second, byte));
    __m256i highs = _mm256_packus_epi16(_mm256_srli_epi16(first, 8), _mm256_srli_epi16(second, 8));
    highs = _mm256_and_si256(highs, seven);
    _mm256_storeu_si256((__m256i*)(low + 16 * i), _mm256_permutevar8x32_epi32(lows, order));
    _mm256_storeu_si256((__m256i*)(high + 16 * i), _mm256_permutevar8x32_epi32(highs, order));
  }
}
inline lanes off_whole(lanes a) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_sub_ps(a.lo, _mm256_round_ps(a.lo, nearest)),
          _mm256_sub_ps(a.hi, _mm256_round_ps(a.hi, nearest))};
}
inline __m256 times_two_to(__m256 a, __m256 n) {
  __m256i by = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);  // NaN: 0
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), by));
}
inline lanes times_two_to(lane_mask m, lanes a, lanes n) {
  return {_mm256_and_ps(m.lo, times_two_to(a.lo, n.lo)),
          _mm256_and_ps(m.hi, times_two_to(a.hi, n.hi))};
}

inline float sum_of(lanes a) {
  __m256 eight = _mm256_add_ps(a.lo, a.hi);
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float max_of(lanes a) {
  __m256 eight = _mm256_max_ps(a.lo, a.hi);
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
/// Halves, quarters, pairs and lanes of all four are joined at once.
template <class F>
inline void join_four(const lanes (&a)[4], float (&to)[4], F f) {
  auto join_halves = [&](lanes x, lanes y) {
    __m256 b = f(x.lo, x.hi), c = f(y.lo, y.hi);
    return f(_mm256_permute2f128_ps(b, c, 0x20), _mm256_permute2f128_ps(b, c, 0x31));
  };
  __m256 ab = join_halves(a[0], a[1]), cd = join_halves(a[2], a[3]);
  __m256 pairs = f(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  pairs = f(pairs, _mm256_movehdup_ps(pairs));  // a, _, c, _; b, _, d, _
  __m128 ac = _mm256_castps256_ps128(pairs), bd = _mm256_extractf128_ps(pairs, 1);
  ac = _mm_shuffle_ps(ac, bd, 0x88);
  _mm_storeu_ps(to, _mm_shuffle_ps(ac, ac, 0xd8));
}
inline void sums_of(const lanes (&a)[4], float (&to)[4]) {
  join_four(a, to, [](__m256 x, __m256 y) { return _mm256_add_ps(x, y); });
}
inline void maxima_of(const lanes (&a)[4], float (&to)[4]) {
  join_four(a, to, [](__m256 x, __m256 y) { return _mm256_max_ps(x, y); });
}
inline int32_t int_sum_of(int_lanes a) {
  __m256i eight = _mm256_add_epi32(a.lo, a.hi);
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

/// Rows r[0..8) of one half become columns.
inline void transpose_eight(__m256 (&r)[8]) {
  __m256 t[8];
  for (int i = 0; i < 8; i += 4) {
    __m256 a = _mm256_unpacklo_ps(r[i], r[i + 1]), b = _mm256_unpackhi_ps(r[i], r[i + 1]);
    __m256 c = _mm256_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
    t[i] = _mm256_shuffle_ps(a, c, 0x44);
    t[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
    t[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
  }
  for (int i = 0; i < 4; i++) {
    r[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
  }
}

/// r[i] lane j becomes r[j] lane i.
inline void transpose(lanes (&r)[16]) {
  __m256 a[8], b[8], c[8], d[8];
  for (int i = 0; i < 8; i++) {
    a[i] = r[i].lo, b[i] = r[i].hi, c[i] = r[i + 8].lo, d[i] = r[i + 8].hi;
  }
  transpose_eight(a), transpose_eight(b), transpose_eight(c), transpose_eight(d);
  for (int i = 0; i < 8; i++) {
    r[i] = {a[i], c[i]};
    r[i + 8] = {b[i], d[i]};
  }
}

/// Four bytes per lane, and two int16 per lane.
struct byte_lanes {
  __m256i lo, hi;
};
struct word_lanes {
  __m256i lo, hi;
};

inline byte_lanes load_bytes(const uint8_t* p) {
  return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)(p + 32))};
}
inline void keep(byte_lanes& a) { asm("" : "+x"(a.lo), "+x"(a.hi)); }
inline byte_lanes low_halves(byte_lanes a) {
  __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask)};
}
inline byte_lanes high_halves(byte_lanes a) {
  return low_halves({_mm256_srli_epi16(a.lo, 4), _mm256_srli_epi16(a.hi, 4)});
}
/// Shifts left by `bits` (right if below zero) and keeps `mask` of each byte: the mask drops what
/// comes from the neighbour byte.
template <int bits, int mask>
inline __m256i moved_bits(__m256i h) {
  __m256i moved = bits >= 0 ? _mm256_slli_epi32(h, bits >= 0 ? bits : 0)
                            : _mm256_srli_epi32(h, bits >= 0 ? 0 : -bits);
  return _mm256_and_si256(moved, _mm256_set1_epi8(mask));
}
template <int g>
inline byte_lanes with_fifth_bit(byte_lanes a, byte_lanes h) {
  return {_mm256_or_si256(a.lo, moved_bits<4 - g, 0x10>(h.lo)),
          _mm256_or_si256(a.hi, moved_bits<4 - g, 0x10>(h.hi))};
}
template <int g>
inline byte_lanes with_two_bits(byte_lanes a, byte_lanes h) {
  return {_mm256_or_si256(a.lo, moved_bits<4 - 2 * g, 0x30>(h.lo)),
          _mm256_or_si256(a.hi, moved_bits<4 - 2 * g, 0x30>(h.hi))};
}

inline word_lanes words_from_int8(const int8_t* p) {
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)p)),
          _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)(p + 16)))};
}
inline word_lanes words_set1(int16_t x) { return {_mm256_set1_epi16(x), _mm256_set1_epi16(x)}; }
inline word_lanes words_pair(const int16_t* p) {
  int32_t both;
  __builtin_memcpy(&both, p, 4);
  return {_mm256_set1_epi32(both), _mm256_set1_epi32(both)};
}
template <int bits>
inline word_lanes words_shift(word_lanes a) {
  return {_mm256_slli_epi16(a.lo, bits), _mm256_slli_epi16(a.hi, bits)};
}
inline int_lanes first_words(word_lanes a) {
  return {_mm256_srai_epi32(_mm256_slli_epi32(a.lo, 16), 16),
          _mm256_srai_epi32(_mm256_slli_epi32(a.hi, 16), 16)};
}
inline int_lanes second_words(word_lanes a) {
  return {_mm256_srai_epi32(a.lo, 16), _mm256_srai_epi32(a.hi, 16)};
}
inline int_lanes pair_products(word_lanes a, word_lanes b) {
  return {_mm256_madd_epi16(a.lo, b.lo), _mm256_madd_epi16(a.hi, b.hi)};
}

/// x[0..4) in each lane.
inline byte_lanes four_bytes(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, 4);
  return {_mm256_set1_epi32(four), _mm256_set1_epi32(four)};
}
/// w[2i] * x[2i] + w[2i+1] * x[2i+1], w without sign, x with; the sum must fit 16 bits.
inline word_lanes byte_products(byte_lanes w, byte_lanes x) {
  return {_mm256_maddubs_epi16(w.lo, x.lo), _mm256_maddubs_epi16(w.hi, x.hi)};
}
/// Each lane's bytes 0 and 2, or 1 and 3, with sign.
inline word_lanes words_of_even_bytes(byte_lanes a) {
  return {_mm256_srai_epi16(_mm256_slli_epi16(a.lo, 8), 8),
          _mm256_srai_epi16(_mm256_slli_epi16(a.hi, 8), 8)};
}
inline word_lanes words_of_odd_bytes(byte_lanes a) {
  return {_mm256_srai_epi16(a.lo, 8), _mm256_srai_epi16(a.hi, 8)};
}
/// Numbers of 15 bits, or INT32_MIN as 0: of each four the first, the third, the second, the
/// fourth.
inline void store_words_crossed(int16_t* p, int_lanes a) {
  __m256i low = _mm256_set1_epi32(0x7fff);
  __m256i words = _mm256_packs_epi32(_mm256_and_si256(a.lo, low), _mm256_and_si256(a.hi, low));
  words = _mm256_permute4x64_epi64(words, 0xd8);
  words = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(words, 0xd8), 0xd8);
  _mm256_storeu_si256((__m256i*)p, words);
}
inline word_lanes words_add(word_lanes a, word_lanes b) {
  return {_mm256_add_epi16(a.lo, b.lo), _mm256_add_epi16(a.hi, b.hi)};
}
inline byte_lanes bytes_flip_top(byte_lanes a) {
  __m256i top = _mm256_set1_epi8(-128);
  return {_mm256_xor_si256(a.lo, top), _mm256_xor_si256(a.hi, top)};
}
/// Of signed bytes, the distance from zero (128 fits).
inline byte_lanes bytes_absolute(byte_lanes a) {
  return {_mm256_abs_epi8(a.lo), _mm256_abs_epi8(a.hi)};
}
/// Of signed bytes: a, or -a where b is below zero, or 0 where b is.
inline byte_lanes bytes_turned_by(byte_lanes a, byte_lanes b) {
  return {_mm256_sign_epi8(a.lo, b.lo), _mm256_sign_epi8(a.hi, b.hi)};
}
inline __m256i eight_first_twice(__m256i a) {
  return _mm256_or_si256(_mm256_and_si256(a, _mm256_set1_epi32(0xffff)), _mm256_slli_epi32(a, 16));
}
inline word_lanes words_first_twice(word_lanes a) {
  return {eight_first_twice(a.lo), eight_first_twice(a.hi)};
}
inline word_lanes words_second_twice(word_lanes a) {
  return words_first_twice({_mm256_srli_epi32(a.lo, 16), _mm256_srli_epi32(a.hi, 16)});
}

}  // namespace
}  // namespace lethe
