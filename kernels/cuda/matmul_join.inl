#pragma once

#include "kernels/cuda/output.inl"
#include "kernels/cuda/panel_unit.inl"

// A block multiplies one panel with some rows of x: thread t sums lane t % 16 of segment t / 16, so
// that 16 threads read a panel's neighbouring bytes and K is summed in the CPU's order. At 3.35
// TB/s and 600 ns about 2 MB must be on their way; the 256 panels of a matrix with 4096 rows are
// 32,768 threads, so each asks for 64 bytes before it uses any, or more, where there is one
// row of x.

namespace lethe::device {

constexpr uint32_t product_threads = panel_rows * segments;

/// What a product reads of the weights and where its sums go.
struct product_place {
  const uint8_t* panels;
  uint32_t panels_before;        // of the matrix, that are not there
  size_t pitch, columns_before;  // bytes: of a panel; of its columns that are not there
  uint32_t cols;
  product_part part;
  uint32_t rows;  // of x
  device_output to;

  uint32_t first_panel() const { return part.row_begin / panel_rows; }
  uint32_t panel_count() const {
    bool empty = part.row_begin >= part.row_end || part.segment_begin >= part.segment_end;
    return empty ? 0 : blocks_for(part.row_end, panel_rows) - first_panel();
  }
  launch_shape shape(uint32_t rows_each, uint32_t shared_words) const {
    return {panel_count(), blocks_for(rows, rows_each), shared_words};
  }
};

/// Panel i of the part.
LETHE_BODY const uint8_t* panel_at(const product_place& p, uint32_t i) {
  uint32_t panel = p.part.row_begin / panel_rows + i;
  return p.panels + (panel - p.panels_before) * p.pitch - p.columns_before;
}

/// A thread's own stretch of K.
struct product_stretch {
  uint32_t lane, segment;
  uint32_t begin, end;  // columns; none if the segment is not in the part
  uint32_t origin;      // the part's first column, which is x's first
  const uint8_t* panel;
};

/// `each` threads have a segment.
template <dtype T, uint32_t each = panel_rows, class Block>
LETHE_BODY product_stretch stretch_of(Block& block, const product_place& p) {
  product_stretch s;
  s.lane = block.thread() % each;
  s.segment = block.thread() / each;
  s.origin = segment_start<T>(p.cols, p.part.segment_begin);
  bool asked = s.segment >= p.part.segment_begin && s.segment < p.part.segment_end;
  s.begin = asked ? segment_start<T>(p.cols, s.segment) : s.origin;
  s.end = asked ? segment_start<T>(p.cols, s.segment + 1) : s.origin;
  s.panel = panel_at(p, block.x());
  return s;
}

/// No segment is longer.
template <dtype T>
LETHE_BODY uint32_t longest_segment(uint32_t cols) {
  constexpr uint32_t elements = block_elements(T);
  return (cols / elements + segments - 1) / segments * elements;
}

/// Segments of a row in the order ((0+1)+(2+3))+((4+5)+(6+7)); a pair with one half elsewhere is
/// the other half.
template <class Block>
LETHE_BODY float joined_segments(Block& block, const product_part& part, uint32_t first) {
  float sum[segments];
  bool has[segments];
  for (uint32_t s = 0; s < segments; s++) {
    has[s] = s >= part.segment_begin && s < part.segment_end;
    sum[s] = block.get(first + s * panel_rows);
  }
  for (uint32_t pairs = segments / 2; pairs > 0; pairs /= 2) {
    for (uint32_t i = 0; i < pairs; i++) {
      float both = sum[2 * i] + sum[2 * i + 1];
      float one = has[2 * i] ? sum[2 * i] : sum[2 * i + 1];
      sum[i] = has[2 * i] && has[2 * i + 1] ? both : one;
      has[i] = has[2 * i] || has[2 * i + 1];
    }
  }
  return sum[0];
}

/// Stores R rows of x times the part's panel `panel`, whose segments' sums lie in shared words [row
/// of x][segment][row of the panel].
template <uint32_t R, uint32_t threads, class Block>
LETHE_BODY void store_joined(Block& block, const product_place& p, uint32_t panel) {
  uint32_t lane = block.thread() % panel_rows, first_row = block.y() * R;
  uint32_t n = (p.part.row_begin / panel_rows + panel) * panel_rows + lane;
  if (n < p.part.row_begin || n >= p.part.row_end) return;
  for (uint32_t r = block.thread() / panel_rows; r < R; r += threads / panel_rows) {
    if (first_row + r >= p.rows) return;
    float sum = joined_segments(block, p.part, r * segments * panel_rows + lane);
    put_output(p.to, first_row + r, n - p.part.row_begin, sum);
  }
}

/// Joins the block's sums of R rows of x.
template <uint32_t R, class Block>
LETHE_BODY void store_products(Block& block, const product_place& p, const float (&sums)[R]) {
  uint32_t lane = block.thread() % panel_rows, segment = block.thread() / panel_rows;
  for (uint32_t r = 0; r < R; r++) {
    block.put((r * segments + segment) * panel_rows + lane, sums[r]);
  }
  block.barrier();
  store_joined<R, product_threads>(block, p, block.x());
}

template <uint32_t R>
constexpr uint32_t join_words = R* product_threads;

/// Rows of x that a block takes when there are few: all threads read them from memory.
constexpr uint32_t few_rows = 4;

}  // namespace lethe::device
