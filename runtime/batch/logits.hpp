#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace lethe {

inline constexpr float logit_lowest = -std::numeric_limits<float>::infinity();

// The comparisons below are such that the compiler makes vectors of loops over them.

inline float without_nan(float logit) { return logit > logit_lowest ? logit : logit_lowest; }

/// The largest logit; NaN counts as -inf.
inline float largest_of(std::span<const float> logits) {
  // Independent lanes, or each comparison would wait for the one before.
  std::array<float, 32> lanes;
  lanes.fill(logit_lowest);
  size_t i = 0;
  for (; i + lanes.size() <= logits.size(); i += lanes.size()) {
    for (size_t j = 0; j < lanes.size(); ++j) {
      float logit = logits[i + j];
      lanes[j] = logit > lanes[j] ? logit : lanes[j];
    }
  }
  float largest = logit_lowest;
  for (; i < logits.size(); ++i) largest = logits[i] > largest ? logits[i] : largest;
  for (float lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

/// The first of the largest; 0 if all are -inf or NaN. Only the block that holds it is searched.
inline size_t index_of_largest(std::span<const float> logits) {
  constexpr size_t block = 256;
  size_t best = 0;
  float largest = logit_lowest;
  for (size_t i = 0; i < logits.size(); i += block) {
    float here = largest_of(logits.subspan(i, std::min(block, logits.size() - i)));
    if (!(here > largest)) continue;
    largest = here;
    best = i;
  }
  while (largest > logit_lowest && logits[best] != largest) ++best;
  return best;
}

/// `value` where `holds`, else 0.
inline float where(bool holds, float value) {
  return std::bit_cast<float>(std::bit_cast<int32_t>(value) & -int32_t(holds));
}

/// (logit - largest) / temperature, where equal infinities are equal. Neither is NaN.
inline float below(float logit, float largest, float temperature = 1) {
  bool apart = std::bit_cast<int32_t>(logit) != std::bit_cast<int32_t>(largest);
  return where(apart, (logit - largest) / temperature);
}

/// e^x for x <= 0, within 2e-7 of it; 0 below -87. Plain arithmetic, so that the compiler makes
/// vectors of it and every machine gives the same bits.
inline float exp_below(float x) {
  bool counts = (std::bit_cast<int32_t>(x) & 0x7fffffff) < std::bit_cast<int32_t>(87.f);
  float bounded = where(counts, x);
  constexpr float to_integer = 0x1.8p23f;  // what is added to it loses its fraction
  float n = (bounded * 1.44269504f + to_integer) - to_integer;
  float r = bounded - n * 0x1.63p-1f;  // ln 2 in two parts: the first times n is exact
  r -= n * -0x1.bd0106p-13f;
  // Taylor's series; |r| <= ln(2) / 2, so that what is left out is below 1e-8.
  float y = r * (1.f / 5040) + 1.f / 720;
  y = ((y * r + 1.f / 120) * r + 1.f / 24) * r + 1.f / 6;
  y = ((y * r + 0.5f) * r + 1) * r + 1;
  y *= std::bit_cast<float>((int32_t(n) + 127) << 23);
  return where(counts, y);
}

/// So many logits are passed over at once where none of them is large enough.
inline constexpr uint32_t passed_over = 256;

/// A sum in double of many floats, in eight lanes, so that no addition waits for the one before.
/// The order is the same on every machine.
class lane_sum {
 public:
  /// Only the last block may be other than whole eights.
  void add(std::span<const float> block) {
    size_t i = 0;
    for (; i + 8 <= block.size(); i += 8)
      for (size_t j = 0; j < 8; ++j) lanes_[j] += double(block[i + j]);
    for (; i < block.size(); ++i) lanes_[i % 8] += double(block[i]);
  }
  double total() const {
    const auto& l = lanes_;
    return ((l[0] + l[1]) + (l[2] + l[3])) + ((l[4] + l[5]) + (l[6] + l[7]));
  }

 private:
  std::array<double, 8> lanes_ = {};
};

using weight_block = std::array<float, passed_over>;

/// e^((logit - largest) / temperature) of as many logits as a block holds, or fewer; the rest of
/// `out` is not for use. Loops of a fixed length, of which the compiler makes vectors.
inline void weigh_block(std::span<const float> logits, float largest, float temperature,
                        weight_block& out) {
  if (logits.size() < out.size()) out.fill(logit_lowest);
  std::copy(logits.begin(), logits.end(), out.begin());
  for (size_t i = 0; i < passed_over; ++i) {
    out[i] = below(without_nan(out[i]), largest, temperature);
  }
  for (size_t i = 0; i < passed_over; ++i) out[i] = exp_below(out[i]);
}

/// In place, for many.
inline void exp_all(std::span<float> x) {
  for (float& v : x) v = exp_below(v);
}

}  // namespace lethe
