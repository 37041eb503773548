#include "runtime/batch/logprobs.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/base/check.hpp"
#include "runtime/batch/logits.hpp"

namespace lethe {

logprobs::logprobs(std::span<const float> logits) : logits_(logits), largest_(largest_of(logits)) {
  lane_sum sum;
  weight_block block;
  for (size_t done = 0; done < logits.size(); done += block.size()) {
    auto part = logits.subspan(done, std::min(block.size(), logits.size() - done));
    weigh_block(part, largest_, 1, block);
    sum.add(std::span(block).first(part.size()));
  }
  log_sum_ = std::log(sum.total());
}

float logprobs::of_logit(float logit) const { return float(below(logit, largest_) - log_sum_); }

float logprobs::of(uint32_t id) const {
  check(id < logits_.size());
  return of_logit(without_nan(logits_[id]));
}

uint32_t logprobs::top(std::span<token_logprob> out) const {
  if (out.empty()) return 0;
  uint32_t found = 0;
  for (uint32_t first = 0; first < logits_.size(); first += passed_over) {
    auto block = logits_.subspan(first, std::min<size_t>(passed_over, logits_.size() - first));
    if (found == out.size() && !(largest_of(block) > out.back().logprob)) continue;
    for (uint32_t i = 0; i < block.size(); ++i) {
      float logit = without_nan(block[i]);
      bool full = found == out.size();
      if (full && !(logit > out.back().logprob)) continue;
      uint32_t at = full ? found - 1 : found++;
      for (; at > 0 && logit > out[at - 1].logprob; --at) out[at] = out[at - 1];
      out[at] = {.id = first + i, .logprob = logit};
    }
  }
  for (token_logprob& best : out.first(found)) best.logprob = of_logit(best.logprob);
  return found;
}

}  // namespace lethe
