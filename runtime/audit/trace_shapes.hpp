#pragma once

#include "runtime/audit/stream_shapes.hpp"

namespace lethe::audit {

/// What records of messages tell of one request (A5). Held: those that may be kept are the same
/// for every request, sizes included, but for the times at which it began and its place was free.
/// Control: mode `all`, over answers that have no shape.
finding measure_trace_shapes(const shape_settings& s);

}  // namespace lethe::audit
