#pragma once

#include "runtime/grammar/emitter.hpp"

namespace lethe {

/// Refuses what never ends, what calls itself before it takes a byte, and what is nested too
/// deep at its shallowest. Fills each node's height.
result<void> check_grammar(grammar& g, grammar_builder& from, const grammar_emitter& by,
                           uint32_t root);
/// Fills `run` and `reach`. `one_character` says by node whether such a rule begins there.
void measure_runs(grammar& g, const std::pmr::vector<bool>& one_character);
void find_classes(grammar& g);

}  // namespace lethe
