#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "runtime/base/wipe.hpp"
#include "runtime/batch/logprobs.hpp"
#include "runtime/batch/sampling.hpp"
#include "runtime/batch/token_counts.hpp"

namespace lethe {

/// Room that grows no more, of which a draw takes the front; wiped as far as it was taken.
template <class T>
class wiped_room {
 public:
  wiped_room(size_t n, std::pmr::memory_resource* memory) : all_(n, memory) {}
  std::span<T> first(size_t n) {
    taken_ = std::max(taken_, n);
    return std::span(all_).first(n);
  }
  void wipe() {
    lethe::wipe(all_.data(), taken_ * sizeof(T));
    taken_ = 0;
  }

 private:
  std::pmr::vector<T> all_;
  size_t taken_ = 0;
};

/// Room for one draw. What it holds derives from a request: made of memory that is wiped, used
/// for one draw at a time, and wiped when a request ends.
class sampler_scratch {
 public:
  sampler_scratch(uint32_t vocab, std::pmr::memory_resource* memory);
  sampler_scratch(sampler_scratch&&) = default;

  static size_t bytes(uint32_t vocab);
  uint32_t vocab() const { return vocab_; }
  void wipe();

 private:
  friend class drawing;

  uint32_t vocab_;
  wiped_room<float> logits_;  // where penalties, biases or a form change them
  wiped_room<float> x_, w_, keys_, sums_;
  wiped_room<uint32_t> ids_, places_;
};

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
