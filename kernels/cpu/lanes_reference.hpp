#pragma once

#include <stddef.h>
#include <stdint.h>

// Sixteen lanes of float or int32, one after another: the meaning of every function that the
// kernels are written with. Other instruction sets do the same, bit for bit (NaN payloads apart).

namespace lethe {
namespace {

/// Values of sixteen lanes that registers can hold.
inline constexpr uint32_t lane_registers = 0;
/// Panels that a float product takes at once; with 6 rows of x their sums should fit registers.
inline constexpr uint32_t tile_panels = 1;
/// Panels that one row takes at once: in streams of reading, with sums that don't wait for each
/// other.
inline constexpr uint32_t one_row_panels = 1;
/// Vectors whose exponentials are computed side by side, where registers suffice.
inline constexpr uint32_t exp_at_once = 1;

struct lanes {
  float v[16];
};
struct int_lanes {
  int32_t v[16];
};
struct lane_mask {
  bool v[16];
};

/// f(i) for each lane.
template <class F>
inline lanes each(F f) {
  lanes r;
  for (int i = 0; i < 16; i++) r.v[i] = f(i);
  return r;
}
template <class F>
inline int_lanes each_int(F f) {
  int_lanes r;
  for (int i = 0; i < 16; i++) r.v[i] = f(i);
  return r;
}

inline float float_from_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }

inline lanes zero() { return {}; }
inline lanes set1(float x) {
  return each([&](int) { return x; });
}
inline lanes load(const float* p) {
  return each([&](int i) { return p[i]; });
}
inline void store(float* p, lanes a) {
  for (int i = 0; i < 16; i++) p[i] = a.v[i];
}
/// The first `count` lanes (0 to 16); the others are zero and their memory is not read.
inline lanes load_partial(const float* p, uint32_t count) {
  return each([&](int i) { return uint32_t(i) < count ? p[i] : 0.0f; });
}
inline void store_partial(float* p, lanes a, uint32_t count) {
  for (uint32_t i = 0; i < 16 && i < count; i++) p[i] = a.v[i];
}

/// a * b + c, rounded once.
inline lanes fma(lanes a, lanes b, lanes c) {
  return each([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
inline lanes add(lanes a, lanes b) {
  return each([&](int i) { return a.v[i] + b.v[i]; });
}
inline lanes sub(lanes a, lanes b) {
  return each([&](int i) { return a.v[i] - b.v[i]; });
}
inline lanes mul(lanes a, lanes b) {
  return each([&](int i) { return a.v[i] * b.v[i]; });
}
inline lanes div(lanes a, lanes b) {
  return each([&](int i) { return a.v[i] / b.v[i]; });
}
/// The second where the two don't compare (NaN, equal zeros).
inline lanes max(lanes a, lanes b) {
  return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline lanes min(lanes a, lanes b) {
  return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline lanes square_root(lanes a) {
  return each([&](int i) { return __builtin_sqrtf(a.v[i]); });
}
inline lanes absolute(lanes a) {
  return each([&](int i) { return __builtin_fabsf(a.v[i]); });
}

inline lane_mask less(lanes a, lanes b) {
  lane_mask m;
  for (int i = 0; i < 16; i++) m.v[i] = a.v[i] < b.v[i];
  return m;
}
/// Where the two don't compare, too.
inline lane_mask not_less(lanes a, lanes b) {
  lane_mask m = less(a, b);
  for (bool& v : m.v) v = !v;
  return m;
}
/// Where a is NaN.
inline lane_mask unordered(lanes a) {
  lane_mask m;
  for (int i = 0; i < 16; i++) m.v[i] = a.v[i] != a.v[i];
  return m;
}
/// Lane i where bit i is set, and back.
inline lane_mask mask_of(uint16_t bits) {
  lane_mask m;
  for (int i = 0; i < 16; i++) m.v[i] = bits >> i & 1;
  return m;
}
inline uint32_t bits_of(lane_mask m) {
  uint32_t bits = 0;
  for (int i = 0; i < 16; i++) bits |= uint32_t(m.v[i]) << i;
  return bits;
}
/// m ? a : b
inline lanes select(lane_mask m, lanes a, lanes b) {
  return each([&](int i) { return m.v[i] ? a.v[i] : b.v[i]; });
}

inline lanes from_bf16(const uint16_t* p) {
  return each([&](int i) { return float_from_bits(uint32_t(p[i]) << 16); });
}
inline float float_from_f16(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16, rest = h & 0x7fff;
  if (rest >= 0x7c00) {  // infinity, NaN (made quiet)
    return float_from_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13 | (rest > 0x7c00) << 22);
  }
  if (rest < 0x400) {  // below 2^-14 the step is 2^-24
    float small = float(rest) * 0x1p-24f;
    return float_from_bits(sign | bits_of(small));
  }
  return float_from_bits(sign | ((rest << 13) + (112u << 23)));
}
inline lanes from_f16(const uint16_t* p) {
  return each([&](int i) { return float_from_f16(p[i]); });
}
/// Rounded to nearest, ties to even; a NaN stays one.
inline void store_bf16(uint16_t* p, lanes a) {
  for (int i = 0; i < 16; i++) {
    uint32_t bits = bits_of(a.v[i]);
    bool nan = a.v[i] != a.v[i];
    p[i] = uint16_t((nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

inline int_lanes int_load(const int32_t* p) {
  return each_int([&](int i) { return p[i]; });
}
inline void int_store(int32_t* p, int_lanes a) {
  for (int i = 0; i < 16; i++) p[i] = a.v[i];
}
inline int_lanes int_zero() { return {}; }
inline int_lanes int_set1(int32_t x) {
  return each_int([&](int) { return x; });
}
inline int_lanes int_add(int_lanes a, int_lanes b) {
  return each_int([&](int i) { return a.v[i] + b.v[i]; });
}
inline int_lanes int_sub(int_lanes a, int_lanes b) {
  return each_int([&](int i) { return a.v[i] - b.v[i]; });
}
inline int_lanes int_from_int8(const int8_t* p) {
  return each_int([&](int i) { return int32_t(p[i]); });
}
inline int_lanes int_from_uint8(const uint8_t* p) {
  return each_int([&](int i) { return int32_t(p[i]); });
}
/// To nearest, ties to even; what does not fit becomes INT32_MIN.
inline int_lanes round_to_int(lanes a) {
  return each_int([&](int i) {
    double shifted = double(a.v[i]) + 0x1.8p52;  // 1.5 * 2^52: the sum has no bits below 1
    double whole = shifted - 0x1.8p52;
    bool fits = whole >= -0x1p31 && whole < 0x1p31;
    return fits ? int32_t(whole) : INT32_MIN;
  });
}
inline lanes to_float(int_lanes a) {
  return each([&](int i) { return float(a.v[i]); });
}
inline lanes float_of_bits(int_lanes a) {
  return each([&](int i) { return __builtin_bit_cast(float, a.v[i]); });
}
/// The lowest byte of each.
inline void store_int8(int8_t* p, int_lanes a) {
  for (int i = 0; i < 16; i++) p[i] = int8_t(a.v[i]);
}
/// Of numbers of 15 bits the high seven and the low eight; of INT32_MIN zeros.
inline void store_15_bits(int8_t* high, int8_t* low, const int_lanes (&a)[4]) {
  for (int i = 0; i < 64; i++) {
    high[i] = int8_t(a[i / 16].v[i % 16] >> 8 & 127);
    low[i] = int8_t(a[i / 16].v[i % 16]);
  }
}
/// a less the whole number nearest to it (of two, the even one); exact.
inline lanes off_whole(lanes a) {
  return each([&](int i) { return a.v[i] - __builtin_rintf(a.v[i]); });
}
/// a * 2^n where m, for a whole n from -126 to 127; 0 elsewhere.
inline lanes times_two_to(lane_mask m, lanes a, lanes n) {
  int_lanes power = round_to_int(n);
  return each([&](int i) {
    return m.v[i] ? a.v[i] * float_from_bits((uint32_t(power.v[i]) + 127) << 23) : 0.0f;
  });
}

/// (0+8), (1+9), ... (7+15); then lanes 4, 2 and 1 apart.
inline float sum_of(lanes a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; i++) a.v[i] = a.v[i] + a.v[i + half];
  }
  return a.v[0];
}
inline float max_of(lanes a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; i++) a.v[i] = a.v[i] > a.v[i + half] ? a.v[i] : a.v[i + half];
  }
  return a.v[0];
}
/// sum_of and max_of each.
inline void sums_of(const lanes (&a)[4], float (&to)[4]) {
  for (int i = 0; i < 4; i++) to[i] = sum_of(a[i]);
}
inline void maxima_of(const lanes (&a)[4], float (&to)[4]) {
  for (int i = 0; i < 4; i++) to[i] = max_of(a[i]);
}
inline int32_t int_sum_of(int_lanes a) {
  int32_t sum = 0;
  for (int i = 0; i < 16; i++) sum += a.v[i];
  return sum;
}

/// r[i] lane j becomes r[j] lane i.
inline void transpose(lanes (&r)[16]) {
  for (int i = 0; i < 16; i++) {
    for (int j = 0; j < i; j++) {
      float a = r[i].v[j];
      r[i].v[j] = r[j].v[i];
      r[j].v[i] = a;
    }
  }
}

/// Four bytes per lane: byte i of lane r is v[4 * r + i].
struct byte_lanes {
  uint8_t v[64];
};
/// Two int16 per lane.
struct word_lanes {
  int16_t v[32];
};

template <class F>
inline byte_lanes each_byte(F f) {
  byte_lanes r;
  for (int i = 0; i < 64; i++) r.v[i] = uint8_t(f(i));
  return r;
}
template <class F>
inline word_lanes each_word(F f) {
  word_lanes r;
  for (int i = 0; i < 32; i++) r.v[i] = int16_t(f(i));
  return r;
}

inline void keep(byte_lanes&) {}
inline byte_lanes load_bytes(const uint8_t* p) {
  return each_byte([&](int i) { return p[i]; });
}
inline byte_lanes bytes_flip_top(byte_lanes a) {
  return each_byte([&](int i) { return a.v[i] ^ 128; });
}
/// The lower and the upper half of each byte.
inline byte_lanes low_halves(byte_lanes a) {
  return each_byte([&](int i) { return a.v[i] & 15; });
}
inline byte_lanes high_halves(byte_lanes a) {
  return each_byte([&](int i) { return a.v[i] >> 4; });
}
/// a with bit g of h's bytes as bit 4.
template <int g>
inline byte_lanes with_fifth_bit(byte_lanes a, byte_lanes h) {
  return each_byte([&](int i) { return a.v[i] | (h.v[i] >> g & 1) << 4; });
}
/// a with bits 2g and 2g + 1 of h's bytes as bits 4 and 5.
template <int g>
inline byte_lanes with_two_bits(byte_lanes a, byte_lanes h) {
  return each_byte([&](int i) { return a.v[i] | (h.v[i] >> (2 * g) & 3) << 4; });
}

inline word_lanes words_from_int8(const int8_t* p) {
  return each_word([&](int i) { return p[i]; });
}
inline word_lanes words_set1(int16_t x) {
  return each_word([&](int) { return x; });
}
/// The same two in each lane.
inline word_lanes words_pair(const int16_t* p) {
  return each_word([&](int i) { return p[i % 2]; });
}
/// a * 2^bits, of each word.
template <int bits>
inline word_lanes words_shift(word_lanes a) {
  return each_word([&](int i) { return a.v[i] * (1 << bits); });
}
/// The first and the second word of each lane.
inline int_lanes first_words(word_lanes a) {
  return each_int([&](int i) { return int32_t(a.v[2 * i]); });
}
inline int_lanes second_words(word_lanes a) {
  return each_int([&](int i) { return int32_t(a.v[2 * i + 1]); });
}
/// Per lane the sum of the two products.
inline int_lanes pair_products(word_lanes a, word_lanes b) {
  return each_int([&](int i) {
    return int32_t(a.v[2 * i]) * b.v[2 * i] + int32_t(a.v[2 * i + 1]) * b.v[2 * i + 1];
  });
}

/// x[0..4) in each lane.
inline byte_lanes four_bytes(const int8_t* x) {
  return each_byte([&](int i) { return uint8_t(x[i % 4]); });
}
/// Per lane c + the sum of the four products of w's bytes, without sign, with x's, with sign.
inline int_lanes four_products(int_lanes c, byte_lanes w, byte_lanes x) {
  return each_int([&](int i) {
    const uint8_t* v = w.v + 4 * i;
    const int8_t* four = reinterpret_cast<const int8_t*>(x.v) + 4 * i;
    return c.v[i] + v[0] * four[0] + v[1] * four[1] + v[2] * four[2] + v[3] * four[3];
  });
}

}  // namespace
}  // namespace lethe
