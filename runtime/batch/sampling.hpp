#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/base/result.hpp"

namespace lethe {

struct logit_bias {
  uint32_t id;
  float bias;
};

/// How a request wants its tokens drawn. Defaults draw from the model's own distribution.
struct sampling {
  float temperature = 1;  // 0: always the most likely token
  uint32_t top_k = 0;     // 0: all
  float typical_p = 1;
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;      // over prompt and output
  float presence_penalty = 0;        // over output
  float frequency_penalty = 0;       // over output
  std::span<const logit_bias> bias;  // in the request's arena; biases of one id add up
  uint64_t seed = 0;
  bool want_logprob = false;  // of the drawn token
  uint32_t logprobs = 0;      // most likely alternatives; wants the drawn token's, too
};

/// What a request may leave to the model's publisher.
struct sampling_wishes {
  std::optional<float> temperature, top_p, min_p, typical_p, repetition_penalty;
  std::optional<uint32_t> top_k;
};

/// The error begins with the name of the first parameter that is out of range, and says the range.
result<void> check_sampling(const sampling& how, uint32_t vocab);

/// Whether `sample` will look at the counts: without a penalty they need not be kept.
constexpr bool needs_counts(const sampling& how) {
  return how.repetition_penalty != 1 || how.presence_penalty != 0 || how.frequency_penalty != 0;
}

/// Whether a draw takes numbers alone (`row_draw`): neither counts nor biases, and nothing is told
/// of probabilities.
constexpr bool takes_numbers_alone(const sampling& how) {
  return !needs_counts(how) && how.bias.empty() && !how.want_logprob && how.logprobs == 0;
}

}  // namespace lethe
