#pragma once

#include <cstdint>

#include "runtime/audit/finding.hpp"

namespace lethe::audit {

struct order_settings {
  uint32_t rounds = 500;
  uint64_t seed = 1;
  double alpha = 1e-6;
};

/// Whether what requests say decides which is done first (A7): of several that come together and
/// are as long, half say one thing and half another, in random order. Held: their ranks by
/// completion are as if the two were named by lot, by the exact distribution of rank sums.
/// Control: a queue that is sorted by what the prompt says.
finding measure_completion_order(const order_settings& s);

}  // namespace lethe::audit
