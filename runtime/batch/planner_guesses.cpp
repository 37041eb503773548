#include "runtime/base/check.hpp"
#include "runtime/batch/planner.hpp"

namespace lethe {

namespace {

/// A choice that waits for its next step.
sequence& decoding(planner_state& state, uint64_t request, uint32_t choice) {
  const planned_request& r = state.requests.at(request);
  check(choice < r.sequences.size());
  sequence& s = state.sequences[r.sequences[choice]];
  check(s.phase == sequence_phase::decoding && !s.in_flight);
  return s;
}

}  // namespace

void guess(planner_state& state, uint64_t request, uint32_t choice, uint32_t count) {
  decoding(state, request, choice).guesses = count;
}

void accept_guess(planner_state& state, uint64_t request, uint32_t choice) {
  sequence& s = decoding(state, request, choice);
  check(s.position < s.end);
  ++s.position;
}

}  // namespace lethe
