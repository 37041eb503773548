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

float logprobs::largest_of(std::span<const float> block) const {
  float most;
  row_.maxima(block.data(), block.size(), &most);
  return most;
}

/// f(i, part) for each block, of which the first logit is the i-th.
template <class F>
void logprobs::for_blocks(F f) const {
  for (size_t i = 0; i < logits_.size(); i += draw_block)
    f(i, logits_.subspan(i, std::min(draw_block, logits_.size() - i)));
}

logprobs::logprobs(std::span<const float> logits)
    : logits_(logits), row_(best_cpu_row().draw), largest_(logit_lowest) {
  std::array<float, draw_block> x, w;
  for_blocks([this](size_t, std::span<const float> part) {
    largest_ = std::max(largest_, largest_of(part));
  });
  double sum = 0;
  for_blocks([&](size_t, std::span<const float> part) {
    float here = 0;
    row_.weigh(part.data(), part.size(), largest_, 1, x.data(), w.data(), &here);
    sum += double(here);
  });
  log_sum_ = std::log(sum);
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
  for_blocks([&](size_t first, std::span<const float> block) {
    bool full = found == out.size();
    if (full && !(largest_of(block) > out.back().logprob)) return;
    if (full && block.size() == draw_block && largest_ < infinity) {  // else it is not below
      std::array<uint32_t, draw_block> places;
      size_t likely = row_.find(block.data(), 1, out.back().logprob, infinity, places.data());
      for (size_t i = 0; i < likely; ++i) take(first + places[i]);
    } else {
      for (size_t i = 0; i < block.size(); ++i) take(first + i);
    }
  });
  for (token_logprob& best : out.first(found)) best.logprob = of_logit(best.logprob);
  return found;
}

}  // namespace lethe
