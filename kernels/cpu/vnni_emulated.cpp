// zen4's and amx's algorithms with their instructions replaced by older ones: tests run them where
// the machine has no VNNI and no AMX. Programs don't link it.
#include <string.h>

#include "kernels/cpu/amx_emulated.hpp"
#include "kernels/cpu/denormals.hpp"
#include "kernels/cpu/lanes_avx512.hpp"

namespace lethe {

thread_local emulated_tiles tiles_of_thread;
thread_local size_t products_in_tiles;

namespace {

/// Each lane's four products, exact in 16-bit words two at a time.
inline int_lanes four_products(int_lanes c, byte_lanes w, byte_lanes x) {
  __m512i low = _mm512_set1_epi16(255), four = x.v;
  __m512i even = _mm512_madd_epi16(_mm512_and_si512(w.v, low),
                                   _mm512_srai_epi16(_mm512_slli_epi16(four, 8), 8));
  __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(w.v, 8), _mm512_srai_epi16(four, 8));
  return {_mm512_add_epi32(c.v, _mm512_add_epi32(even, odd))};
}

}  // namespace
}  // namespace lethe

#include "kernels/cpu/row_of_emulated.inl"

namespace lethe {
namespace {

/// As in amx_registers.hpp.
class tile_registers {
 public:
  tile_registers(uint32_t rows, uint32_t numbers) {
    all().rows = rows;
    all().numbers = numbers;
  }
  ~tile_registers() { memset(&all(), 0, sizeof all()); }
  tile_registers(const tile_registers&) = delete;
  tile_registers& operator=(const tile_registers&) = delete;

  template <uint32_t to>
  void load(const void* from, size_t step) {
    for (uint32_t r = 0; r < rows_of(to); r++)
      memcpy(all().tile[to][r], (const char*)from + r * step, to < 2 ? all().numbers : 64);
  }
  template <uint32_t sums>
  void clear() {
    memset(all().tile[sums], 0, sizeof all().tile[sums]);
  }
  template <uint32_t sums, uint32_t x, uint32_t weights>
  void multiply() {
    add_products<int8_t>(all().tile[x], all().tile[weights], all().tile[sums]);
  }
  template <uint32_t sums, uint32_t x, uint32_t weights>
  void multiply_unsigned() {
    add_products<uint8_t>(all().tile[x], all().tile[weights], all().tile[sums]);
  }
  template <uint32_t sums, uint32_t x, uint32_t weights>
  void multiply_bf16() {
    denormals_are_zeros mode;
    for (uint32_t r = 0; r < all().rows; r++)
      add_bf16_products(all().tile[x][r], all().tile[weights], all().tile[sums][r]);
    products_in_tiles++;
  }
  template <uint32_t from>
  void store(void* to, size_t step) {
    for (uint32_t r = 0; r < rows_of(from); r++)
      memcpy((char*)to + r * step, all().tile[from][r], 64);
  }

 private:
  using tile = int8_t[16][64];
  static emulated_tiles& all() { return tiles_of_thread; }
  static uint32_t rows_of(uint32_t i) { return i == 2 || i == 3 ? all().numbers / 4 : all().rows; }

  template <class X>
  static void add_products(const tile& x, const tile& w, tile& sums) {
    for (uint32_t r = 0; r < all().rows; r++) {
      for (uint32_t lane = 0; lane < 16; lane++) {
        int32_t sum;
        memcpy(&sum, sums[r] + 4 * lane, 4);
        for (uint32_t k = 0; k < all().numbers; k++) sum += X(x[r][k]) * w[k / 4][4 * lane + k % 4];
        memcpy(sums[r] + 4 * lane, &sum, 4);
      }
    }
    products_in_tiles++;
  }
  /// Of one row of x.
  [[gnu::noinline]] static void add_bf16_products(const int8_t (&x)[64], const tile& w,
                                                  int8_t (&sums)[64]) {
    const __m512i upper = _mm512_set1_epi32(int32_t(0xffff0000));
    auto floats = [](__m512i bits) { return lanes{_mm512_castsi512_ps(bits)}; };
    lanes even = zero(), odd = zero();
    for (uint32_t pair = 0; pair < 16; pair++) {
      __m512i both = _mm512_loadu_si512(w[pair]);
      lanes a, b;
      both_bf16((const uint16_t*)x + 2 * pair, a, b);
      even = fma(a, floats(_mm512_slli_epi32(both, 16)), even);
      odd = fma(b, floats(_mm512_and_si512(both, upper)), odd);
    }
    float* to = (float*)sums;
    lethe::store(to, add(lethe::load(to), add(even, odd)));
  }
};

inline void round_to_bf16(lanes first, lanes second, uint16_t* to) {
  lanes smallest = set1(0x1p-126f);
  auto no_denormals = [&](lanes a) {
    return select(less(absolute(a), smallest), mul(a, zero()), a);
  };
  store_bf16(to, no_denormals(first));
  store_bf16(to + 16, no_denormals(second));
}

/// bf16_vectors.hpp's, step by step.
[[gnu::noinline]] inline lanes add_pairs(lanes w, lanes x, lanes sum) {
  denormals_are_zeros mode;
  asm volatile("" : "+v"(sum.v), "+v"(w.v), "+v"(x.v));  // not before that
  auto second = [](lanes pairs) {
    __m512i bits = _mm512_castps_si512(pairs.v);
    return lanes{_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_srli_epi32(bits, 16), 16))};
  };
  auto first = [](lanes pairs) {
    return lanes{_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(pairs.v), 16))};
  };
  sum = fma(second(w), second(x), sum);
  sum = fma(first(w), first(x), sum);
  asm volatile("" : "+v"(sum.v));
  return sum;
}

}  // namespace
}  // namespace lethe

#include "kernels/cpu/row_in_tiles.inl"
//
#include "kernels/cpu/row_of_pairs.inl"

namespace lethe {

extern const cpu_row vnni_emulated, amx_emulated, amx_tensor_emulated, pairs_emulated;
constexpr cpu_row without_tiles = row_of_emulated("vnni_emulated", matmul<zen4_ways>);
constinit const cpu_row vnni_emulated = without_tiles;
constinit const cpu_row amx_emulated = row_in_tiles<zen4_ways>("amx_emulated", without_tiles);
constinit const cpu_row amx_tensor_emulated =
    row_of_tensor_arithmetic<zen4_ways>("amx_tensor_emulated", without_tiles);
constinit const cpu_row pairs_emulated = row_of_pairs<zen4_ways>("pairs_emulated", without_tiles);

}  // namespace lethe
