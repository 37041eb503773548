#include <algorithm>

#include "runtime/batch/planner.hpp"

namespace lethe {

namespace {

void add_tokens_stored(const planner_state& state, const planned_request& request,
                       planner_load& load) {
  uint32_t shared_max = request.ask.prompt_tokens / state.config.page_tokens;
  shared_max *= state.config.page_tokens;
  uint32_t shared = 0;
  for (uint32_t index : request.sequences) {
    const sequence& s = state.sequences[index];
    if (s.pages.empty()) continue;
    // A choice that has not copied the prompt's last page yet holds the shared pages only.
    uint32_t tokens = s.fork ? shared_max : s.position;
    shared = std::max(shared, std::min(tokens, shared_max));
    load.tokens_stored += tokens - std::min(tokens, shared_max);
  }
  load.tokens_stored += shared;
}

}  // namespace

planner_load load_of(const planner_state& state) {
  planner_load load{.pages_total = state.pool.total(),
                    .pages_reserved = state.pool.used,
                    .pages_holding = state.pool.holding,
                    .pages_retiring = state.pool.retiring,
                    .pages_free = state.pool.free,
                    .queued = uint32_t(state.queue.size()),
                    .running = state.running};
  for (const auto& [id, request] : state.requests) add_tokens_stored(state, request, load);
  return load;
}

}  // namespace lethe
