#include <algorithm>

#include "runtime/batch/planner.hpp"

namespace lethe {

uint32_t prompt_tokens_beside(const planner_state& state) {
  const uint32_t whole = state.config.step_tokens;
  const size_t prompts = state.prefilling.size();
  const size_t decodes = state.ready.size() + state.decodes_in_flight;
  if (decodes == 0) return whole;
  auto share = uint64_t{whole} * prompts / (prompts + decodes);
  auto tokens = std::max(share, uint64_t{prompt_tokens_least});
  if (state.row_ns == 0) return uint32_t(tokens);
  auto rows = step_ns_beside_decodes / state.row_ns;
  auto in_time = std::max(rows - std::min(rows, decodes), uint64_t{prompt_tokens_always});
  return uint32_t(std::min(tokens, in_time));
}

/// Steps of few tokens tell how long weights are read. Of the others each counts a quarter, and at
/// most as twice what was expected: a machine that stood still for a minute isn't that slow.
void learn_pace(planner_state& state, const step_plan& plan, uint64_t ns) {
  if (plan.tokens < prompt_tokens_always) return;
  uint64_t measured = std::max(ns / plan.tokens, uint64_t{1}), &known = state.row_ns;
  known = known == 0 ? measured : (3 * known + std::min(measured, 2 * known) + 3) / 4;
}

}  // namespace lethe
