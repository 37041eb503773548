// Activations in blocks of 32: the largest becomes 127.

#include <stddef.h>
#include <stdint.h>

#include "kernels/x_unit.hpp"

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

inline void quantize_unit(const float* x, x_unit& to) {
  lanes a = load(x), b = load(x + 16);
  float largest = max_of(max(size_of(a), size_of(b)));
  bool zeros = largest < 0x1p-100f;  // also keeps 127 / largest finite
  float scale = zeros ? 0.0f : largest / 127.0f, inverse = zeros ? 0.0f : 127.0f / largest;
  int_lanes qa = round_and_clamp(a, inverse), qb = round_and_clamp(b, inverse);
  store_int8(to.q, qa);
  store_int8(to.q + 16, qb);
  int32_t first = int_sum_of(qa), second = int_sum_of(qb);
  to.scale = scale;
  to.scaled_sum = scale * float(first + second);
  to.sums[0] = int16_t(first);
  to.sums[1] = int16_t(second);
  to.start = product_start - 128 * (first + second);
}

template <uint32_t most_together>
void quantize(const float* x, uint32_t rows, uint32_t cols, size_t begin, size_t end, x_unit* to) {
  x_layout layout = layout_of_x(rows, cols / 32, most_together);
  while (begin < end) {
    uint32_t r = uint32_t(begin / cols), first = r / layout.tile * layout.tile;
    uint32_t step = rows_of_tile(layout, first);
    size_t row_end = size_t{r + 1} * cols < end ? size_t{r + 1} * cols : end;
    x_unit* unit = to + place_of_unit(layout, r, uint32_t(begin % cols / 32));
    for (; begin < row_end; begin += 32, unit += step) quantize_unit(x + begin, *unit);
  }
}

}  // namespace
}  // namespace lethe
