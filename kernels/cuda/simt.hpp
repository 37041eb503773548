#pragma once

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

// The words that kernel bodies are written in. A body is the operator() of a plain struct (its
// arguments), called by each thread of each block with a `Block`:
//   x(), y(), thread()      which block, which thread of it
//   barrier()               all threads of the block meet; orders shared words
//   shuffle_xor(v, mask)    the v of the lane whose number differs in mask's bits; by whole warps
//   get(i), put(i, v)       shared word i as a float; get_word, put_word as bits
//   get_two(i)              shared words i and i + 1, i % 2 == 0
//   get_four(i)             shared words i .. i + 3, i % 4 == 0
//   copy_four(i, p)         asks for them to become what lies at p, a multiple of 16 bytes
//   copy_word(i, p)         for shared word i to become what lies at p
//   copies_asked()          ends a batch of what this thread has asked for
//   copies_there<n>()       waits for its batches but the last n; others see them behind a barrier
//   multiply<type>(a, b, c) c + a * b of small matrices that a warp holds together; by whole warps
// nvcc compiles bodies with device_block (device.cuh); tests compile them for the CPU with a block
// that runs its threads in any order and looks for what a GPU would do wrong in silence.
// Every struct also has `threads`, the size of its blocks, and shape(), where and how much to run.

#ifdef __CUDACC__
#define LETHE_BODY __device__ __forceinline__
/// Before a loop that nvcc would leave one: what its number reaches must lie in registers.
#define LETHE_UNROLL _Pragma("unroll")
/// Before a loop whose end passes on what is still on its way: two turns in one need no move from
/// register to register, for which a thread would wait.
#define LETHE_TWO_TURNS _Pragma("unroll 2")
#else
#define LETHE_BODY inline
#define LETHE_UNROLL
#define LETHE_TWO_TURNS
#endif

namespace lethe::device {

/// A launch: x * y blocks, each with so many shared words of 32 bits. None if x or y is 0.
struct launch_shape {
  uint32_t x = 0, y = 1;
  uint32_t shared_words = 0;
};

/// Of a block. Devices from sm_80 on have it, those of 90 and 100 twice a multiprocessor; a launch
/// of more than 48 KiB has to ask for it.
constexpr uint32_t shared_words_most = (99 << 10) / 4;

/// Blocks that a multiprocessor should have room for; 0: as many as registers happen to leave.
template <class Body>
constexpr uint32_t blocks_side_by_side() {
  if constexpr (requires { Body::side_by_side; }) return Body::side_by_side;
  return 0;
}

/// Whether its blocks may come before the kernel before has ended; the body waits for that end.
template <class Body>
constexpr bool comes_early() {
  if constexpr (requires { Body::early; }) return Body::early;
  return false;
}

constexpr uint32_t warp_lanes = 32;

constexpr uint32_t blocks_for(size_t n, uint32_t each) { return uint32_t((n + each - 1) / each); }

struct alignas(8) two_words {
  uint32_t v[2];
};
struct alignas(16) four_words {
  uint32_t v[4];
};

/// What tensor cores multiply: 16 rows of a with 8 columns of b, a * b being summed over `depth`.
/// Integer sums are exact; the order in which the others are added, and how wide, is the device's.
/// s8: signed bytes. bf16: pairs. tf32: floats of which the low 13 bits are not looked at.
enum class product_type : uint8_t { s8, s8_half, bf16, tf32 };

struct product_facts {
  uint32_t depth, per_word;   // numbers of K; how many a word holds
  uint32_t a_words, b_words;  // of a lane
};
constexpr product_facts facts_of(product_type t) {
  constexpr product_facts all[] = {{32, 4, 4, 2}, {16, 4, 2, 1}, {16, 2, 4, 2}, {8, 1, 4, 2}};
  return all[uint8_t(t)];
}

/// A lane's words of the two factors, as mma.sync has them. With g = lane / 4, t = lane % 4 and n
/// numbers a word: a[0] is row g, K from n * t on; a[1] is row g + 8 of the same K; a[2] and a[3]
/// are these rows 4 * n further along K. b[0] is column g, K from n * t on; b[1] is 4 * n further.
template <product_type T>
struct product_rows {
  uint32_t a[facts_of(T).a_words];
};
template <product_type T>
struct product_columns {
  uint32_t b[facts_of(T).b_words];
};
/// Of the product: row g, columns 2 * t and 2 * t + 1, then the same of row g + 8.
template <class Number>
struct lane_sums {
  Number c[4];
};
template <product_type T>
using product_number = std::conditional_t<T <= product_type::s8_half, int32_t, float>;
template <product_type T>
using product_sums = lane_sums<product_number<T>>;

#ifdef __CUDACC__

LETHE_BODY float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
LETHE_BODY float square_root(float x) { return __fsqrt_rn(x); }
LETHE_BODY float absolute(float x) { return fabsf(x); }
LETHE_BODY float from_bits(uint32_t bits) { return __uint_as_float(bits); }
LETHE_BODY uint32_t bits_of(float x) { return __float_as_uint(x); }
/// c + the products of the four signed bytes of a with those of b.
LETHE_BODY int32_t dot_four(uint32_t a, uint32_t b, int32_t c) {
  return __dp4a(int32_t(a), int32_t(b), c);
}
LETHE_BODY float from_f16(uint16_t h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
/// Both to nearest, ties to even; every NaN becomes 0x7fff.
LETHE_BODY uint32_t bf16_pair(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
LETHE_BODY uint32_t low_word(double x) { return uint32_t(__double2loint(x)); }
LETHE_BODY uint32_t high_word(double x) { return uint32_t(__double2hiint(x)); }
LETHE_BODY double from_words(uint32_t low, uint32_t high) {
  return __hiloint2double(int(high), int(low));
}
/// Of two words the halves of one side, the first word's low.
LETHE_BODY uint32_t low_halves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x5410); }
LETHE_BODY uint32_t high_halves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x7632); }
LETHE_BODY uint32_t popcount(uint32_t bits) { return uint32_t(__popc(bits)); }
/// Of bits that are not 0.
LETHE_BODY uint32_t lowest_bit(uint32_t bits) { return uint32_t(__ffs(int(bits)) - 1); }
/// To nearest, ties to even, of what fits.
LETHE_BODY int32_t nearest(float x) { return __float2int_rn(x); }
/// v, of which the compiler forgets what it is: what follows from it is not worked out before a
/// loop and held in registers until the loop's end.
LETHE_BODY uint32_t anew(uint32_t v) {
  asm volatile("" : "+r"(v));
  return v;
}
template <class T>
LETHE_BODY T load(const void* p) {
  return *static_cast<const T*>(p);
}

#else

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float square_root(float x) { return __builtin_sqrtf(x); }
inline float absolute(float x) { return __builtin_fabsf(x); }
inline float from_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
inline int32_t dot_four(uint32_t a, uint32_t b, int32_t c) {
  for (int i = 0; i < 32; i += 8) c += int32_t(int8_t(a >> i)) * int8_t(b >> i);
  return c;
}
inline float from_f16(uint16_t h) {
  _Float16 half = __builtin_bit_cast(_Float16, h);
  return float(half);
}
inline uint32_t bf16_pair(float low, float high) {
  auto half = [](float x) {
    uint32_t bits = bits_of(x);
    return x != x ? 0x7fffu : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  };
  return half(low) | half(high) << 16;
}
inline uint32_t low_word(double x) { return uint32_t(__builtin_bit_cast(uint64_t, x)); }
inline uint32_t high_word(double x) { return uint32_t(__builtin_bit_cast(uint64_t, x) >> 32); }
inline double from_words(uint32_t low, uint32_t high) {
  return __builtin_bit_cast(double, uint64_t{high} << 32 | low);
}
inline uint32_t low_halves(uint32_t a, uint32_t b) { return (a & 0xffff) | b << 16; }
inline uint32_t high_halves(uint32_t a, uint32_t b) { return a >> 16 | (b & 0xffff0000); }
inline uint32_t popcount(uint32_t bits) { return uint32_t(__builtin_popcount(bits)); }
inline uint32_t lowest_bit(uint32_t bits) { return uint32_t(__builtin_ctz(bits)); }
/// What does not fit is as CUDA has it, not as x86.
inline int32_t nearest(float x) {
  if (x != x) return 0;
  if (x >= 0x1p31f) return INT32_MAX;
  return x < -0x1p31f ? INT32_MIN : int32_t(__builtin_rintf(x));
}
inline uint32_t anew(uint32_t v) { return v; }
/// Traps where a GPU would: at an address that is no multiple of the size.
template <class T>
inline T load(const void* p) {
  if (reinterpret_cast<uintptr_t>(p) % alignof(T) != 0) __builtin_trap();
  T value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}

#endif

/// The second where the two don't compare (NaN, equal zeros).
LETHE_BODY float greater_of(float a, float b) { return a > b ? a : b; }
LETHE_BODY float less_of(float a, float b) { return a < b ? a : b; }
LETHE_BODY uint32_t least_of(uint32_t a, uint32_t b) { return a < b ? a : b; }
LETHE_BODY uint32_t greatest_of(uint32_t a, uint32_t b) { return a > b ? a : b; }

/// To nearest, ties to even; what does not fit becomes INT32_MIN.
LETHE_BODY int32_t round_to_int(float x) {
  return x >= -0x1p31f && x < 0x1p31f ? nearest(x) : INT32_MIN;
}
LETHE_BODY float from_bf16(uint16_t h) { return from_bits(uint32_t(h) << 16); }
/// Rounded to nearest, ties to even; a NaN stays one.
LETHE_BODY uint16_t to_bf16(float x) {
  uint32_t bits = bits_of(x);
  return uint16_t((x != x ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Rounded to nearest, ties away from zero; a NaN stays one.
LETHE_BODY uint32_t to_tf32(float x) {
  uint32_t bits = bits_of(x);
  return (x != x ? bits | 0x400000 : bits + 0x1000) & ~0x1fffu;
}

constexpr float log2_e = 0x1.715476p+0f;

/// 2^x as the CPU rows compute it (lanes_math.inl says how and why).
LETHE_BODY float two_to(float x) {
  int32_t whole = nearest(x);
  float r = x - float(whole);
  float p = fused(0x1.5b63c0p-10f, r, 0x1.3ce93ep-7f);
  p = fused(p, r, 0x1.c6b840p-5f);
  p = fused(p, r, 0x1.ebf9c0p-3f);
  p = fused(p, r, 0x1.62e428p-1f);
  p = fused(p, r, 1.0f);
  return x < -126.0f ? 0.0f : p * from_bits((uint32_t(whole) + 127) << 23);
}

}  // namespace lethe::device
