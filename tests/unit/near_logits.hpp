#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/cpu_row.hpp"

namespace lethe::testing {

/// By tensor cores differences are at most this share of a row's largest logit: a dozen roundings
/// to 2^-8 one after the other, some of which are lost in sums. In int8 keys and values, and what
/// quantized weights multiply, are rounded to 2^-7, and so to another number where they differ a
/// little.
constexpr float tensor_share(kv_type kv, dtype weights) {
  return kv == kv_type::int8 || !is_float(weights) ? 0x1p-4f : 0x1p-5f;
}

/// How far a row of logits is from the one wanted.
struct logit_distance {
  float largest = 0, off = 0;  // of those wanted; of all differences
  bool numbers = true;

  logit_distance(std::span<const float> got, std::span<const float> want) {
    for (size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::abs(want[i]));
      off = std::max(off, std::abs(got[i] - want[i]));
      numbers = numbers && std::isfinite(got[i]);
    }
  }
  bool within(float share) const { return numbers && off <= share * largest; }
};

}  // namespace lethe::testing
