#include "runtime/batch/sampling.hpp"

#include <cmath>

#include "kernels/draw_policy.hpp"
#include "runtime/base/limits.hpp"

namespace lethe {
namespace {

struct bounded {
  const char* name;
  float value, low, high;
  bool without_low;  // the range begins above `low`
};

result<void> check_range(const bounded& b) {
  bool above = b.without_low ? b.value > b.low : b.value >= b.low;
  if (above && b.value <= b.high) return {};  // NaN is neither
  return fail("{} is {}; allowed is {}{}, {}]", b.name, b.value, b.without_low ? '(' : '[', b.low,
              b.high);
}

result<void> check_bias(const logit_bias& b, uint32_t vocab) {
  if (b.id >= vocab) {
    return fail("logit_bias names token {}; the vocabulary ends at {}", b.id, vocab - 1);
  }
  return check_range({"logit_bias", b.bias, -100, 100, false});
}

}  // namespace

result<void> check_sampling(const sampling& how, uint32_t vocab) {
  // Bounds without a reason in arithmetic are those of the OpenAI API.
  const bounded all[] = {
      {"temperature", how.temperature, 0, draw_temperature_max, false},
      {"typical_p", how.typical_p, 0, 1, true},
      {"top_p", how.top_p, 0, 1, true},
      {"min_p", how.min_p, 0, 1, false},
      {"repetition_penalty", how.repetition_penalty, 0, 100, true},
      {"presence_penalty", how.presence_penalty, -2, 2, false},
      {"frequency_penalty", how.frequency_penalty, -2, 2, false},
  };
  for (const bounded& b : all) {
    if (auto in_range = check_range(b); !in_range) return in_range;
  }
  if (how.logprobs > limits::logprobs_max) {
    return fail("logprobs is {}; at most {} are allowed", how.logprobs, limits::logprobs_max);
  }
  if (how.logprobs > vocab) {
    return fail("logprobs is {}; the vocabulary has only {} tokens", how.logprobs, vocab);
  }
  if (how.bias.size() > limits::logit_bias_max) {
    return fail("logit_bias has {} entries; at most {} are allowed", how.bias.size(),
                limits::logit_bias_max);
  }
  for (const logit_bias& b : how.bias) {
    if (auto in_range = check_bias(b, vocab); !in_range) return in_range;
  }
  return {};
}

}  // namespace lethe
