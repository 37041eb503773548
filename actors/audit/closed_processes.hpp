#pragma once

#include "actors/audit/embedded_cluster.hpp"
#include "runtime/audit/finding.hpp"

namespace lethe::audit {

/// Whether strict's processes are closed: no reading of their memory, no tracing, no cores, no new
/// code, locked keys. Tried by a process of the same user that has no privileges, and read from the
/// kernel's account of each. The control is a lab cluster's.
finding measure_closed_processes(embedded_cluster& strict, const embedded_settings& settings);

}  // namespace lethe::audit
