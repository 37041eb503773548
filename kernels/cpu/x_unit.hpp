#pragma once

#include <stdint.h>

#include "kernels/panels.hpp"

namespace lethe {
namespace {

/// 32 columns of one row of x, as the products read them.
struct x_unit {
  int8_t q[unit_columns];
  float scale;
  float scaled_sum;    // scale * sum of q
  int16_t sums[2];     // of q, per half
  int32_t correction;  // the sum of q times what the weights' numbers are stored too high
};

}  // namespace
}  // namespace lethe
