#pragma once

#include "kernels/cuda/elementwise.inl"
#include "kernels/cuda/output.inl"

// What ranks of a tensor cut do with what they got from each other, one number per thread.

namespace lethe::device {

/// Sums of `count` stretches of x, in the order ((0+1)+(2+3))+...
struct add_tree {
  static constexpr uint32_t threads = elementwise_threads;
  const float* x;
  size_t stride;
  uint32_t count;
  device_output to;
  uint32_t rows, cols;

  launch_shape shape() const { return {blocks_for(cols, threads), rows}; }
  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t col = block.x() * threads + block.thread();
    if (col >= cols) return;
    size_t i = size_t{block.y()} * cols + col;
    float sum[segments];
    for (uint32_t r = 0; r < segments; r++) sum[r] = r < count ? x[r * stride + i] : 0.0f;
    for (uint32_t width = 1; width < segments; width *= 2) {
      for (uint32_t r = 0; r + width < segments; r += 2 * width) {
        // A half that is not there adds nothing, not even a zero: -0 + 0 is 0.
        if (r + width < count) sum[r] = sum[r] + sum[r + width];
      }
    }
    put_output(to, block.y(), col, sum[0]);
  }
};

/// From part after part to row after row.
struct join_columns {
  static constexpr uint32_t threads = elementwise_threads;
  column_parts from;
  device_output to;

  launch_shape shape() const { return {blocks_for(from.cols, threads), from.rows}; }
  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t col = block.x() * threads + block.thread(), row = block.y();
    if (col >= from.cols) return;
    uint32_t units = (from.cols + from.unit - 1) / from.unit;
    // The last part that begins at or before the unit: units * part / parts <= unit.
    auto part = uint32_t((uint64_t{col / from.unit + 1} * from.parts - 1) / units);
    uint32_t begin = begin_of(part, units), end = begin_of(part + 1, units);
    const float* columns = from.x + part * from.stride;
    put_output(to, row, col, columns[size_t{row} * (end - begin) + (col - begin)]);
  }

 private:
  LETHE_BODY uint32_t begin_of(uint32_t part, uint32_t units) const {
    return least_of(uint32_t(uint64_t{units} * part / from.parts) * from.unit, from.cols);
  }
};

}  // namespace lethe::device
