// Products with bf16 weights of x that is rounded to bf16, too, two columns at once. Along a
// segment of K, from zero on, a pair's second column is added, then its first, each by a fused
// multiply-add; denormal numbers are zeros. That is what vdpbf16ps does.

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu_row.hpp"
#include "kernels/pairs_row.hpp"
#include "kernels/panels.hpp"

namespace lethe {
namespace {

struct of_pairs {
  using terms = of_pairs;
  static constexpr uint32_t columns = 2;
  [[gnu::always_inline]] static lanes add(lanes w, lanes x, lanes sum) {
    return add_pairs(w, x, sum);
  }
};

template <cache into>
struct bf16_pairs : of_pairs {
  static constexpr cache asked_into = into;
  static constexpr uint32_t bytes = 64;
  static lanes at(const uint8_t* p) { return in_pairs((const uint16_t*)p); }
};

template <weight_ways ways>
void matmul_pairs(const matrix& w, const product_part& part, const activations& x, float* y,
                  size_t y_stride) {
  if (!takes_rounded(avx512bf16, w)) return matmul<ways>(w, part, x, y, y_stride);
  if (part.row_begin >= part.row_end || part.segment_begin >= part.segment_end) return;
  uint32_t columns = w.cols / segments * (part.segment_end - part.segment_begin);
  activations pairs{.rows = x.rows, .f = (const float*)x.rounded, .stride = columns / 2};
  bool ask = ways.asked_into(x.rows) != cache::none;
  multiply_float<bf16_pairs<ways.into>>(w, part, pairs, y, y_stride, ask);
}

/// Row after row.
inline void round_in_rows(const float* x, uint32_t, uint32_t, size_t begin, size_t end,
                          x_rounded* to) {
  for (; begin < end; begin += unit_columns)
    round_to_bf16(load(x + begin), load(x + begin + 16), to[begin / unit_columns].n);
}

}  // namespace
}  // namespace lethe
