#pragma once

#include "actors/audit/no_trace.hpp"

namespace lethe::audit {

/// A node's private key opens recordings of its epoch: it is taken out of the engine's memory, by
/// what leads there from the published one, and looked for again when epoch and grace are over.
result<finding> measure_no_node_key(const no_trace_settings& settings);

}  // namespace lethe::audit
