#pragma once

#include "runtime/config/cluster_config.hpp"

namespace lethe {

/// What a file says of gateway, issuer and relay, and whether it needs a model.
void check_services(cluster_config& config);

}  // namespace lethe
