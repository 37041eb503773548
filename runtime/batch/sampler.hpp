#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "runtime/batch/logprobs.hpp"
#include "runtime/batch/sampling.hpp"
#include "runtime/batch/token_counts.hpp"

namespace lethe {

struct candidate {
  float weight;  // probability, up to a factor
  float logit;
  uint32_t id;
};

/// Room for one draw. What it holds derives from a request: made of memory that is wiped, used
/// for one draw at a time, and wiped when a request ends.
class sampler_scratch {
 public:
  sampler_scratch(uint32_t vocab, std::pmr::memory_resource* memory)
      : logits_(vocab, memory), candidates_(vocab, memory) {}
  sampler_scratch(sampler_scratch&&) = default;

  uint32_t vocab() const { return uint32_t(logits_.size()); }
  std::span<float> logits();
  std::span<candidate> candidates();
  void wipe();

 private:
  std::pmr::vector<float> logits_;  // where penalties or biases change them
  std::pmr::vector<candidate> candidates_;
  bool logits_used_ = false, candidates_used_ = false;
};

struct sampled {
  uint32_t id = 0;
  float logprob = 0;  // if wanted
};

/// Draws the token at `position` of choice `choice`. In this order: penalties (repetition divides
/// a positive logit and multiplies a negative one, as Hugging Face does; presence and frequency
/// are subtracted), logit_bias, then temperature 0 takes the largest (the lowest id among equals);
/// else temperature, top_k, typical_p, top_p, min_p, and a draw by inverse CDF over what is left,
/// most likely first. Each filter sees the renormalized survivors of the one before and keeps one
/// at least. With `allowed`, a bit for each id, nothing else is drawn: after the biases the logits
/// of all others are -inf, before any filter. Log probabilities are those of the raw logits
/// (`logprobs`); the how.logprobs most likely go to `top`, which has room for just as many.
///
/// The same arguments give the same token: (seed, choice, position) decides, nothing else.
/// NaN counts as -inf; when no logit is above -inf the answer is the lowest id that is allowed.
/// One must be.
/// `how` has passed check_sampling; logits.size() is the scratch's vocab.
sampled sample(std::span<const float> logits, const sampling& how, const token_counts& counts,
               uint32_t choice, uint32_t position, sampler_scratch& scratch,
               std::span<token_logprob> top = {}, const uint64_t* allowed = nullptr);

}  // namespace lethe
