#pragma once

#include <span>

#include "kernels/cpu_row.hpp"
#include "parallel/cut.hpp"

namespace lethe {

/// Some rows of a weight times the same input as its neighbours'.
struct product {
  const matrix* weight;
  range rows;
  range of_segments;
  const float* bias;  // of the whole weight, or null
  float* y;           // y[row * stride + (n - rows.begin)]
  size_t stride;
};

/// One thread's share of the products: their panels, laid end to end, are split evenly.
void multiply(const cpu_row& row, std::span<const product> products, const activations& x,
              uint32_t thread, uint32_t threads);

/// Where quantized rows are written.
struct quantized_room {
  int8_t* q;
  float* scales;
  int16_t* sums;
  operator quantized_rows() const { return {q, scales, sums}; }
};

/// Quantizes elements [elements.begin, elements.end) of rows that lie back to back in x, `cols`
/// wide; both ends and cols are multiples of 32.
void quantize(const cpu_row& row, const float* x, uint32_t cols, size_t begin, size_t end,
              const quantized_room& into);

}  // namespace lethe
