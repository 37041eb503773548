#pragma once

#include "kernels/cuda/panel_unit.inl"

namespace lethe::device {

/// Rows ids[i] of a matrix as floats (token embedding): a thread for each number.
template <dtype T>
struct rows_to_float {
  static constexpr uint32_t threads = 128;
  const uint8_t* panels;
  uint32_t cols;
  const uint32_t* ids;
  uint32_t count;
  float* y;
  size_t y_stride;

  launch_shape shape() const { return {blocks_for(cols, threads), count}; }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t k = block.x() * threads + block.thread(), row = ids[block.y()];
    if (k >= cols) return;
    const uint8_t* panel = panels + row / panel_rows * panel_stride<T>(cols);
    y[block.y() * y_stride + k] = value_at(panel, k, row % panel_rows);
  }

 private:
  LETHE_BODY static float value_at(const uint8_t* panel, uint32_t k, uint32_t lane) {
    if constexpr (is_float(T)) {
      return float_at<T>(panel, k, lane);
    } else {
      unit_place<T> place(panel, k / unit_columns, lane);
      unit_scales s = place.scales();
      uint32_t i = k % unit_columns;
      unit_numbers n = place.numbers();
      int32_t q = int8_t(n.word[i / 4] >> (i % 4 * 8)) - offset_of<T>();
      if constexpr (T == dtype::q6_k) {
        q -= 32;
        s.scale = s.scale * float(s.half[i / 16]);
      }
      float value = s.scale * float(q);
      return has_minimum<T>() ? value + s.minimum : value;
    }
  }
};

}  // namespace lethe::device
