#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

#include "kernels/draw_row.hpp"

namespace lethe {

inline constexpr float logit_lowest = -std::numeric_limits<float>::infinity();

/// The first of the largest; 0 if all are -inf or NaN. `maxima`: the largest of each block.
inline size_t index_of_largest(std::span<const float> logits, std::span<const float> maxima) {
  size_t block = size_t(std::ranges::max_element(maxima) - maxima.begin());
  float largest = maxima[block];
  if (!(largest > logit_lowest)) return 0;
  return size_t(std::ranges::find(logits.subspan(block * draw_block), largest) - logits.begin());
}

}  // namespace lethe
