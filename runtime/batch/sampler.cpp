#include "runtime/batch/sampler.hpp"

#include <algorithm>

#include "kernels/cpu_row.hpp"
#include "runtime/base/check.hpp"
#include "runtime/batch/counter_rng.hpp"

namespace lethe {

namespace {

void penalize(std::span<float> logits, const sampling& how, const token_counts& counts) {
  counts.for_each([&logits, &how](const token_counts::entry& e) {
    check(e.id < logits.size());
    float& logit = logits[e.id];
    logit = logit > 0 ? logit / how.repetition_penalty : logit * how.repetition_penalty;
    if (e.output > 0) logit -= how.presence_penalty + how.frequency_penalty * float(e.output);
  });
}

/// The logits to draw from: as they came, or changed in the scratch.
std::span<const float> adjusted(std::span<const float> logits, const sampling& how,
                                const token_counts& counts, const uint64_t* allowed,
                                const draw_row& row, sampler_scratch& scratch) {
  bool penalized = needs_counts(how) && counts.distinct() > 0;
  if (!penalized && how.bias.empty() && !allowed) return logits;
  std::span<float> changed = scratch.changed();
  // What is not allowed is -inf, and no penalty or bias brings it back.
  if (allowed)
    row.allow(logits.data(), allowed, logits.size(), changed.data());
  else
    std::copy(logits.begin(), logits.end(), changed.begin());
  if (penalized) penalize(changed, how, counts);
  for (const logit_bias& b : how.bias) changed[b.id] += b.bias;
  return changed;
}

}  // namespace

row_draw numbers_of(const sampling& how, uint32_t choice, uint32_t position) {
  return {.top_k = how.top_k,
          .temperature = how.temperature,
          .typical_p = how.typical_p,
          .top_p = how.top_p,
          .min_p = how.min_p,
          .u = uniform_at(how.seed, choice, position)};
}

sampled sample(std::span<const float> logits, const sampling& how, const token_counts& counts,
               uint32_t choice, uint32_t position, sampler_scratch& scratch,
               std::span<token_logprob> top, const uint64_t* allowed) {
  check(!logits.empty() && logits.size() == scratch.vocab());
  check(top.size() == how.logprobs);
  const draw_row& row = best_cpu_row().draw;
  sampled drawn;
  drawn.id = draw(row, adjusted(logits, how, counts, allowed, row, scratch),
                  numbers_of(how, choice, position), scratch, allowed);
  if (how.want_logprob || how.logprobs > 0) {
    logprobs raw(logits, scratch.maxima());
    drawn.logprob = raw.of(drawn.id);
    raw.top(top);
  }
  return drawn;
}

}  // namespace lethe
