#include <algorithm>

#include "runtime/batch/planner.hpp"

namespace lethe {

namespace {

/// Steps with fewer tokens of prompts tell how long weights are read, or decodes attend.
constexpr uint32_t telling_tokens = 16;

}  // namespace

uint32_t prompt_tokens_beside(const planner_state& state, uint32_t taken) {
  const uint32_t whole = state.config.step_tokens;
  const size_t prompts = state.prefilling.size();
  const size_t decodes = state.ready.size() + state.decodes_in_flight;
  if (decodes == 0) return whole;
  uint64_t fair = std::max<uint64_t>(whole * prompts / (prompts + decodes), prompt_tokens_fair);
  auto in_time = [&](uint64_t ns) {
    uint64_t tokens = state.token_ns == 0 ? 0 : ns / state.token_ns;
    return tokens - std::min<uint64_t>(tokens, taken);
  };
  uint64_t apt = std::min<uint64_t>(in_time(step_ns_of_apt), prompt_tokens_apt);
  uint64_t smooth = std::max(in_time(step_ns_beside_decodes), apt);
  return uint32_t(std::clamp<uint64_t>(smooth, prompt_tokens_least, fair));
}

void learn_pace(planner_state& state, const step_plan& plan, uint64_t ns) {
  if (plan.tokens < plan.logit_rows + telling_tokens) return;
  uint64_t measured = std::max<uint64_t>(ns / plan.tokens, 1);
  uint64_t& known = state.token_ns;
  known = known == 0 ? measured : (3 * known + std::min(measured, 2 * known)) / 4;
}

}  // namespace lethe
