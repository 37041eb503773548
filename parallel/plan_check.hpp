#pragma once

#include "parallel/shard.hpp"

namespace lethe {

/// Whether a shard can execute the plan without reading or writing where it must not: everything
/// within bounds, entries back to back, every logit row filled by exactly one entry and drawn from
/// at most once.
result<void> check_plan(const step_plan& plan, const step_data& data, const shard_config& config,
                        uint32_t vocab);

}  // namespace lethe
