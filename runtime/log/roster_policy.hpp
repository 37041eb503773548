#pragma once

#include "runtime/log/log_policy.hpp"
#include "runtime/log/roster.hpp"

namespace lethe {

/// What an earlier epoch's roster came to, for judging growth.
struct roster_before {
  uint32_t epoch = 0;
  uint64_t capacity = 0;
};

/// Whether a verified roster is one that its clients were promised: enough nodes, capacities as the
/// table of classes says, evidence of accepted kinds, no node or identity above its share, no
/// growth above the rate.
result<void> check_roster(const roster& r, const log_policy& policy,
                          const std::optional<roster_before>& before = {});

}  // namespace lethe
