#pragma once

#include "runtime/base/limits.hpp"

namespace lethe::limits {

inline constexpr size_t trace_records_max = control_bytes_max / 128;  // of all processes; 72 each
inline constexpr size_t recording_bytes_max = control_bytes_max + 4096;
// What `lethe trace replay` takes.
inline constexpr int64_t replay_ns_max = int64_t{24} * 3600 * 1'000'000'000;
inline constexpr size_t replay_engines_max = 256;  // as many as a cluster has

}  // namespace lethe::limits
