#pragma once

#include "runtime/config/cluster_config.hpp"

namespace lethe {

/// Where clients, relays and other hosts come in: each by itself, no two on one port of a host, and
/// whose keys are asked for. What can be checked on another machine only is added to the notes.
void check_listeners(cluster_config& config, std::vector<std::string>& notes);

}  // namespace lethe
