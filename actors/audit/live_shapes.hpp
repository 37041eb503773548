#pragma once

#include "actors/audit/no_trace.hpp"

namespace lethe::audit {

/// Which prompt was asked is guessed from what passed a tap between client and relay (A5), of a
/// running cluster as it is shipped and, for a control, of one whose answers have no shape.
result<finding> measure_live_shapes(const no_trace_settings& settings);

}  // namespace lethe::audit
