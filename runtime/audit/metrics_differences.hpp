#pragma once

#include <cstdint>

#include "runtime/audit/finding.hpp"

namespace lethe::audit {

struct metrics_settings {
  uint32_t victims = 1000;  // of each length class
  uint64_t seed = 1;
  double alpha = 1e-6;
};

/// How long one answer was is guessed from two readings of the metrics, right before and right
/// after it (A9): at most 5 % more often right than by chance. Others came before, of whom the one
/// who guesses knows nothing. Control: the lab's metrics, which show every number as it is.
finding measure_metrics_differences(const metrics_settings& s);

}  // namespace lethe::audit
