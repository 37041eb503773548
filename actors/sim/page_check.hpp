#pragma once

#include <string>

#include "runtime/batch/planner.hpp"

namespace lethe::sim {

/// What is wrong with the pages of a planner; empty: nothing. Counts from the sequences up, not
/// from the pool's own numbers.
std::string check_pages_of(const planner_state& state);

}  // namespace lethe::sim
