// avxvnni's algorithms with their instruction replaced by older ones: tests run them where the
// machine lacks it. Programs don't link it.
#include "kernels/cpu/lanes_avx2.hpp"

namespace lethe {
namespace {

/// Each lane's four products, exact in 16-bit words two at a time.
inline __m256i eight_products(__m256i c, __m256i w, __m256i x) {
  __m256i even = _mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(255)),
                                   _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8));
  __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(w, 8), _mm256_srai_epi16(x, 8));
  return _mm256_add_epi32(c, _mm256_add_epi32(even, odd));
}
inline int_lanes four_products(int_lanes c, byte_lanes w, byte_lanes x) {
  return {eight_products(c.lo, w.lo, x.lo), eight_products(c.hi, w.hi, x.hi)};
}

}  // namespace
}  // namespace lethe

#include "kernels/cpu/row_of_emulated.inl"

namespace lethe {

extern const cpu_row avxvnni_emulated;
constinit const cpu_row avxvnni_emulated = row_of_emulated("avxvnni_emulated", matmul<common_ways>);

}  // namespace lethe
