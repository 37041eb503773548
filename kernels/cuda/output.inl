#pragma once

#include "kernels/cuda/cuda_row.hpp"
#include "kernels/cuda/simt.hpp"

namespace lethe::device {

LETHE_BODY void put_output(const device_output& to, uint32_t row, uint32_t col, float sum) {
  size_t at = row * to.stride + col;
  if (to.bias != nullptr) sum = sum + to.bias[col];
  to.y[at] = to.onto != nullptr ? to.onto[at] + sum : sum;
}

}  // namespace lethe::device
