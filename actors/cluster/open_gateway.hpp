#pragma once

#include "actors/cluster/gateway.hpp"
#include "runtime/config/check_config.hpp"

namespace lethe {

/// Where the log of a file's gateway lies, and what it is called.
publish_setup publish_setup_of(const cluster_config& config);

/// Opens what the gateway of a checked file keeps. Queue and tracer are the caller's to set.
result<gateway_setup> open_gateway(const checked_config& config);

}  // namespace lethe
