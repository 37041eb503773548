// Activations in blocks of 32: the largest becomes 127.

#include <stddef.h>
#include <stdint.h>

namespace lethe {
namespace {

/// |x|, infinite where x is NaN: a block with either has an infinite scale, so that its products
/// are NaN and not silently wrong.
inline lanes size_of(lanes x) { return select(unordered(x), set1(__builtin_inff()), absolute(x)); }

inline int_lanes round_and_clamp(lanes x, float inverse) {
  lanes t = mul(x, set1(inverse));
  t = select(unordered(t), zero(), t);
  return round_to_int(min(max(t, set1(-127.0f)), set1(127.0f)));
}

inline void quantize_block(const float* x, int8_t* q, float* scale, int16_t* sums) {
  lanes a = load(x), b = load(x + 16);
  float largest = max_of(max(size_of(a), size_of(b)));
  bool zeros = largest < 0x1p-100f;  // also keeps 127 / largest finite
  *scale = zeros ? 0.0f : largest / 127.0f;
  float inverse = zeros ? 0.0f : 127.0f / largest;
  int_lanes qa = round_and_clamp(a, inverse), qb = round_and_clamp(b, inverse);
  store_int8(q, qa);
  store_int8(q + 16, qb);
  sums[0] = int16_t(int_sum_of(qa));
  sums[1] = int16_t(int_sum_of(qb));
}

void quantize(const float* x, size_t stride, uint32_t m, uint32_t cols, int8_t* q, float* scales,
              int16_t* sums) {
  for (uint32_t r = 0; r < m; r++) {
    for (uint32_t c = 0; c < cols; c += 32) {
      quantize_block(x + r * stride + c, q, scales, sums);
      q += 32;
      scales += 1;
      sums += 2;
    }
  }
}

}  // namespace
}  // namespace lethe
