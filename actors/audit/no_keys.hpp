#pragma once

#include "actors/audit/no_trace.hpp"

namespace lethe::audit {

/// After an answer, the keys that would open a recording of it are nowhere in the cluster: whatever
/// the client wiped of its own (shared secrets, exporters, content keys, answer keys) is looked for
/// in all memory and files. The client is one that tells them.
result<finding> measure_no_keys(const no_trace_settings& settings);

}  // namespace lethe::audit
