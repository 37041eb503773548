#pragma once

#include "runtime/base/limits.hpp"

namespace lethe::limits {

inline constexpr size_t trace_records_max = control_bytes_max / 128;  // of all processes; 72 each
inline constexpr size_t recording_bytes_max = control_bytes_max + 4096;

}  // namespace lethe::limits
