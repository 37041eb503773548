#pragma once

#include <cstdint>
#include <span>

#include "runtime/batch/drawing.hpp"
#include "runtime/batch/logprobs.hpp"
#include "runtime/batch/sampling.hpp"
#include "runtime/batch/token_counts.hpp"

namespace lethe {

/// What a draw without counts, biases, forms and log probabilities takes: a row of logits and this.
row_draw numbers_of(const sampling& how, uint32_t choice, uint32_t position);

struct sampled {
  uint32_t id = 0;
  float logprob = 0;  // if wanted
};

/// Draws the token at `position` of choice `choice`. In this order: penalties (repetition divides
/// a positive logit and multiplies a negative one, as Hugging Face does; presence and frequency
/// are subtracted), logit_bias, then temperature 0 takes the largest (the lowest id among equals);
/// else temperature, top_k, typical_p, top_p, min_p, and a draw by inverse CDF over what is left,
/// by id. Each filter sees the renormalized survivors of the one before and keeps one at least; of
/// equals it keeps the lowest ids. With `allowed`, a bit for each id, nothing else is drawn: after
/// the biases the logits of all others are -inf, before any filter. Log probabilities are those of
/// the raw logits (`logprobs`); the how.logprobs most likely go to `top`, which has room for just
/// as many.
///
/// The same arguments give the same token: (seed, choice, position) decides, nothing else.
/// NaN counts as -inf; the first +inf is always drawn; when no logit is above -inf the answer is
/// the lowest id that is allowed. One must be. `how` has passed check_sampling; logits.size() is
/// the scratch's vocab.
sampled sample(std::span<const float> logits, const sampling& how, const token_counts& counts,
               uint32_t choice, uint32_t position, sampler_scratch& scratch,
               std::span<token_logprob> top = {}, const uint64_t* allowed = nullptr);

}  // namespace lethe
