// zen4's algorithms with the one instruction replaced by older ones: tests run it where the
// machine has no VNNI. Programs don't link it.
#include "kernels/cpu/lanes_avx512.hpp"

namespace lethe {
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

extern const cpu_row vnni_emulated;
const cpu_row vnni_emulated{.name = "vnni_emulated",
                            .matmul = matmul<zen4_ways>,
                            .quantize = quantize,
                            .row_to_float = row_to_float,
                            .kv_store = kv_store,
                            .attend = attend};

}  // namespace lethe
