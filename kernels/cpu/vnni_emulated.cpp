// zen4's and amx's algorithms with their instructions replaced by older ones: tests run them where
// the machine has no VNNI and no AMX. Programs don't link it.
#include <string.h>

#include "kernels/cpu/amx_emulated.hpp"
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

#include "kernels/cpu/dot_direct.inl"
//
#include "kernels/cpu/units.inl"
//
#include "kernels/cpu/segments.inl"
//
#include "kernels/cpu/matmul_float.inl"
#include "kernels/cpu/matmul_quant.inl"
//
#include "kernels/cpu/matmul.inl"
#include "kernels/cpu/quantize.inl"
#include "kernels/cpu/rows.inl"
//
#include "kernels/cpu/attend.inl"

namespace lethe {
namespace {

/// As in amx_registers.hpp.
class tile_registers {
 public:
  explicit tile_registers(uint32_t rows) { tiles_of_thread.rows = rows; }
  ~tile_registers() { memset(&tiles_of_thread, 0, sizeof tiles_of_thread); }
  tile_registers(const tile_registers&) = delete;
  tile_registers& operator=(const tile_registers&) = delete;

  template <uint32_t turn>
  void multiply(const x_unit* x, const void* first, const void* second) {
    emulated_tiles& t = tiles_of_thread;
    for (uint32_t r = 0; r < t.rows; r++) memcpy(t.x[turn][r], x[r].q, 32);
    multiply_one(t.x[turn], first, t.weights[0], t.sums[2 * turn]);
    if (second) multiply_one(t.x[turn], second, t.weights[1], t.sums[2 * turn + 1]);
  }
  template <uint32_t turn>
  void store_sums(void* first, void* second) {
    const emulated_tiles& t = tiles_of_thread;
    memcpy(first, t.sums[2 * turn], t.rows * 64);
    if (second) memcpy(second, t.sums[2 * turn + 1], t.rows * 64);
  }

 private:
  static void multiply_one(const int8_t (&x)[16][32], const void* from, int8_t (&w)[8][64],
                           int32_t (&sums)[16][16]) {
    memcpy(w, from, sizeof w);
    for (uint32_t r = 0; r < tiles_of_thread.rows; r++) {
      for (uint32_t lane = 0; lane < 16; lane++) {
        int32_t sum = 0;
        for (uint32_t k = 0; k < 32; k++) sum += x[r][k] * w[k / 4][4 * lane + k % 4];
        sums[r][lane] = sum;
      }
    }
    products_in_tiles++;
  }
};

}  // namespace
}  // namespace lethe

#include "kernels/cpu/matmul_amx.inl"

namespace lethe {

extern const cpu_row vnni_emulated, amx_emulated;
const cpu_row vnni_emulated{.name = "vnni_emulated",
                            .x_tile_rows = x_tile_rows,
                            .matmul = matmul<zen4_ways>,
                            .quantize = quantize<x_tile_rows>,
                            .row_to_float = row_to_float,
                            .kv_store = kv_store,
                            .attend = attend};
const cpu_row amx_emulated{.name = "amx_emulated",
                           .x_tile_rows = amx_rows,
                           .matmul = matmul_amx<zen4_ways>,
                           .quantize = quantize<amx_rows>};

}  // namespace lethe
