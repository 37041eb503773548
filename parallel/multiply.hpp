#pragma once

#include <atomic>
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

/// The products' panels, laid end to end, are taken by the threads as they get free, from `taken`
/// on: one that the machine holds up does not hold up the others for long. Returns when none is
/// left.
void multiply(const cpu_row& row, std::span<const product> products, const activations& x,
              std::atomic<uint32_t>& taken, uint32_t threads);

}  // namespace lethe
