#pragma once

#include <cstdint>
#include <span>

#include "kernels/draw_row.hpp"

namespace lethe {

struct token_logprob {
  uint32_t id;
  float logprob;
};

/// Logarithms of probabilities of one row of the model's raw logits: no temperature, no penalty,
/// no bias, no filter. NaN counts as -inf. Views the logits, and `room` for the largest of each
/// block.
class logprobs {
 public:
  logprobs(std::span<const float> logits, std::span<float> room);

  float of(uint32_t id) const;
  /// The out.size() most likely, best first, lower id first among equals. Returns how many: fewer
  /// only where the vocabulary is smaller.
  uint32_t top(std::span<token_logprob> out) const;

 private:
  float of_logit(float logit) const;

  std::span<const float> logits_, maxima_;
  const draw_row& row_;
  float largest_;
  double log_sum_;  // of exp(logit - largest_)
};

}  // namespace lethe
