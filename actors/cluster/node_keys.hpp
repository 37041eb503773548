#pragma once

#include "actors/cluster/node.hpp"
#include "runtime/config/check_config.hpp"

namespace lethe {

/// The certificate of `host`: from the file's [tls] folder, or, where all processes are on this
/// machine, from an authority that lives in memory as long as this process.
result<node_tls> keys_for(const checked_config& config, const std::string& host);

}  // namespace lethe
