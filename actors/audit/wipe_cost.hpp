#pragma once

#include "actors/audit/no_trace.hpp"

namespace lethe::audit {

/// What forgetting costs: the wipe's bandwidth beside the machine's own for zeroes, in one run, and
/// its share of a request's time. It is stated; there is no bound that noise of a shared machine
/// could not break.
result<finding> measure_wipe_cost(const no_trace_settings& settings);

}  // namespace lethe::audit
