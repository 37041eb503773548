// Products with f32, f16 and bf16 weights.

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu_row.hpp"

namespace lethe {
namespace {

/// `into`: the cache that they are asked for into.
template <cache into>
struct f32_weights {
  static constexpr cache asked_into = into;
  static constexpr uint32_t bytes = 64;  // of one k of a panel
  static lanes at(const uint8_t* p) { return load((const float*)p); }
};
template <cache into>
struct f16_weights {
  static constexpr cache asked_into = into;
  static constexpr uint32_t bytes = 32;
  static lanes at(const uint8_t* p) { return from_f16((const uint16_t*)p); }
};
template <cache into>
struct bf16_weights {
  static constexpr cache asked_into = into;
  static constexpr uint32_t bytes = 32;
  static lanes at(const uint8_t* p) { return from_bf16((const uint16_t*)p); }
};

/// A stretch of K: weights of neighbouring panels and rows of x. Strides in bytes and floats.
struct float_stretch {
  const uint8_t* w;
  size_t w_stride;
  const float* x;
  size_t x_stride;
  uint32_t count;
  bool begins;  // a segment: what the sums hold is not theirs
  bool asks;    // for what comes, of so few rows
};

/// sums[r * P + p] goes on with each k in turn, for R rows of x and P panels.
template <class Weights, uint32_t P, uint32_t R, bool Fetch>
void add_products(const float_stretch& s, lanes* sums) {
  lanes a[R * P], v[P];
#pragma GCC unroll 32
  for (uint32_t i = 0; i < R * P; i++) a[i] = s.begins ? zero() : sums[i];
  const uint8_t* w = s.w;
  for (uint32_t k = 0; k < s.count; k++, w += Weights::bytes) {
#pragma GCC unroll 8
    for (uint32_t p = 0; p < P; p++) {
      v[p] = Weights::at(w + p * s.w_stride);
      if constexpr (Fetch) fetch_ahead<Weights::asked_into>(w + p * s.w_stride);
    }
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; r++) {
      lanes x = set1(s.x[r * s.x_stride + k]);
#pragma GCC unroll 8
      for (uint32_t p = 0; p < P; p++) a[r * P + p] = fma(v[p], x, a[r * P + p]);
    }
  }
#pragma GCC unroll 32
  for (uint32_t i = 0; i < R * P; i++) sums[i] = a[i];
}

/// Rows of x whose sums stay in registers; fewer if they go along more panels than a tile's.
inline constexpr uint32_t float_tile_rows = 6;
template <uint32_t P>
constexpr uint32_t most_rows_by = P > tile_panels ? one_row_panels / P : float_tile_rows;

/// add_products for 1 to R rows.
template <class Weights, uint32_t P, bool Fetch, uint32_t R = most_rows_by<P>>
void add_float_tile(const float_stretch& s, uint32_t rows, lanes* sums) {
  if constexpr (R > 1) {
    if (rows < R) return add_float_tile<Weights, P, Fetch, R - 1>(s, rows, sums);
  }
  add_products<Weights, P, R, Fetch>(s, sums);
}

/// More rows than a tile go in blocks: all tiles of a block take a step of K while its weights,
/// as floats, are in the first cache.
inline constexpr uint32_t float_block_rows = 5 * float_tile_rows, float_step = 64;

template <class Weights, uint32_t P>
struct float_work {
  float_work(const product_part& part) : tree(part.segment_begin, part.segment_end) {}
  segment_tree<P * float_block_rows> tree;
  float w[P][float_step * panel_rows];
};

template <class Weights, uint32_t P>
void add_step(const float_stretch& s, uint32_t rows, lanes* sums, float_work<Weights, P>& work) {
  using f32 = f32_weights<Weights::asked_into>;
  float_stretch near = s;
  if constexpr (Weights::bytes != sizeof(float[panel_rows])) {
    for (uint32_t p = 0; p < P; p++) {
      const uint8_t* w = s.w + p * s.w_stride;
      for (uint32_t k = 0; k < s.count; k++) {
        fetch_ahead<Weights::asked_into>(w + k * Weights::bytes);
        store(work.w[p] + k * panel_rows, Weights::at(w + k * Weights::bytes));
      }
    }
    near.w = (const uint8_t*)work.w;
    near.w_stride = sizeof work.w[0];
  }
  // Tiles of equal height; the first fetches weights that are still in memory.
  uint32_t tiles = (rows + float_tile_rows - 1) / float_tile_rows;
  uint32_t height = (rows + tiles - 1) / tiles;
  for (uint32_t r = 0; r < rows; r += height) {
    near.x = s.x + r * s.x_stride;
    uint32_t tile = rows - r < height ? rows - r : height;
    if (r == 0 && near.w == s.w) {
      add_float_tile<f32, P, true>(near, tile, sums);
    } else {
      add_float_tile<f32, P, false>(near, tile, sums + r * P);
    }
  }
}

/// One segment of P panels and a block of rows.
template <class Weights, uint32_t P>
void add_segment(float_stretch s, uint32_t rows, lanes* sums, float_work<Weights, P>& work) {
  if (rows <= float_tile_rows) {
    return s.asks ? add_float_tile<Weights, P, true>(s, rows, sums)
                  : add_float_tile<Weights, P, false>(s, rows, sums);
  }
  uint32_t left = s.count;
  do {
    s.count = least_of(left, float_step);
    add_step<Weights, P>(s, rows, sums, work);
    s.w += s.count * Weights::bytes;
    s.x += s.count;
    s.begins = false;
    left -= s.count;
  } while (left > 0);
}

/// Panels [p0, p0 + P) for `rows` rows of x from x on; y is where the first row's output starts.
template <class Weights, uint32_t P>
void multiply_group(const matrix& w, const product_part& part, uint32_t p0, const float* x,
                    size_t x_stride, uint32_t rows, float* y, size_t y_stride, bool asks) {
  alignas(64) float_work<Weights, P> work(part);
  size_t stride = size_t{w.cols} * Weights::bytes;
  stride = (stride + 63) / 64 * 64;
  uint32_t origin = segment_begin(w.type, w.cols, part.segment_begin);
  for (uint32_t s = part.segment_begin; s < part.segment_end; s++) {
    uint32_t begin = segment_begin(w.type, w.cols, s), end = segment_begin(w.type, w.cols, s + 1);
    const uint8_t* panels = (const uint8_t*)w.panels + p0 * stride + size_t{begin} * Weights::bytes;
    float_stretch all{panels, stride, x + (begin - origin), x_stride, end - begin, true, asks};
    add_segment<Weights, P>(all, rows, work.tree.sums(s, 0), work);
    work.tree.close(s, 0, rows * P);
  }
  const lanes* sums = work.tree.sums(part.segment_end - 1, 0);
  for (uint32_t r = 0; r < rows; r++) {
    for (uint32_t p = 0; p < P; p++) {
      store_panel(part, p0 + p, sums[r * P + p], y + r * y_stride);
    }
  }
}

template <class Weights, uint32_t P>
void multiply_rows(const matrix& w, const product_part& part, uint32_t p0, const activations& x,
                   float* y, size_t y_stride, bool asks) {
  for (uint32_t m = 0; m < x.rows; m += float_block_rows) {
    uint32_t rows = x.rows - m < float_block_rows ? x.rows - m : float_block_rows;
    multiply_group<Weights, P>(w, part, p0, x.f + m * x.stride, x.stride, rows, y + m * y_stride,
                               y_stride, asks);
  }
}

/// Groups of P panels, and what is left one by one.
template <class Weights, uint32_t P>
void multiply_groups(const matrix& w, const product_part& part, const activations& x, float* y,
                     size_t y_stride, bool asks) {
  uint32_t p = part.row_begin / panel_rows;
  uint32_t end = (part.row_end + panel_rows - 1) / panel_rows;
  for (; p + P <= end; p += P) multiply_rows<Weights, P>(w, part, p, x, y, y_stride, asks);
  for (; p < end; p++) multiply_rows<Weights, 1>(w, part, p, x, y, y_stride, asks);
}

/// One row or two leave registers for more panels, which are read in as many streams. `asks`: for
/// the weights that come, of up to a tile's rows; of more always.
template <class Weights>
void multiply_float(const matrix& w, const product_part& part, const activations& x, float* y,
                    size_t y_stride, bool asks) {
  constexpr uint32_t two = one_row_panels / 2 > tile_panels ? one_row_panels / 2 : tile_panels;
  if (x.rows == 1) return multiply_groups<Weights, one_row_panels>(w, part, x, y, y_stride, asks);
  if (x.rows == 2) return multiply_groups<Weights, two>(w, part, x, y, y_stride, asks);
  multiply_groups<Weights, tile_panels>(w, part, x, y, y_stride, asks);
}

}  // namespace
}  // namespace lethe
