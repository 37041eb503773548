#pragma once

#include "runtime/trace/timeline.hpp"

namespace lethe {

/// Runs a recording again and says how that went; the exit code is 1 if it differed from the record
/// or if anything did not hold.
int replay_recording(const timeline& t);

}  // namespace lethe
