#include "runtime/batch/logprobs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/cpu_row.hpp"
#include "runtime/base/check.hpp"
#include "runtime/batch/logits.hpp"

namespace lethe {

namespace {

float without_nan(float logit) { return logit > logit_lowest ? logit : logit_lowest; }

}  // namespace

logprobs::logprobs(std::span<const float> logits, std::span<float> room)
    : logits_(logits), maxima_(room), row_(best_cpu_row().draw) {
  check(room.size() == draw_blocks(logits.size()));
  row_.maxima(logits.data(), logits.size(), room.data());
  largest_ = std::ranges::max(room);
  log_sum_ = std::log(row_.weight_of_all(logits.data(), logits.size(), largest_));
}

/// Equal infinities are equal.
float logprobs::of_logit(float logit) const {
  return float((logit == largest_ ? 0.0 : double(logit - largest_)) - log_sum_);
}

float logprobs::of(uint32_t id) const {
  check(id < logits_.size());
  return of_logit(without_nan(logits_[id]));
}

uint32_t logprobs::top(std::span<token_logprob> out) const {
  if (out.empty()) return 0;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  uint32_t found = 0;
  auto take = [&](size_t id) {
    float logit = without_nan(logits_[id]);
    bool full = found == out.size();
    if (full && !(logit > out.back().logprob)) return;
    uint32_t at = full ? found - 1 : found++;
    for (; at > 0 && logit > out[at - 1].logprob; --at) out[at] = out[at - 1];
    out[at] = {.id = uint32_t(id), .logprob = logit};
  };
  for (size_t first = 0; first < logits_.size(); first += draw_block) {
    bool full = found == out.size();
    if (full && !(maxima_[first / draw_block] > out.back().logprob)) continue;
    auto block = logits_.subspan(first, std::min(draw_block, logits_.size() - first));
    if (full && block.size() == draw_block && largest_ < infinity) {  // else it is not below
      std::array<uint32_t, draw_block> places;
      size_t likely = row_.find(block.data(), 1, out.back().logprob, infinity, places.data());
      for (size_t i = 0; i < likely; ++i) take(first + places[i]);
    } else {
      for (size_t i = 0; i < block.size(); ++i) take(first + i);
    }
  }
  for (token_logprob& best : out.first(found)) best.logprob = of_logit(best.logprob);
  return found;
}

}  // namespace lethe
