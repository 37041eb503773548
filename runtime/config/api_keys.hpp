#pragma once

#include "runtime/base/result.hpp"
#include "runtime/config/cluster_config.hpp"

namespace lethe {

/// What [listen] api_keys names: one key a line; lines that begin with # are comments. Empty where
/// the file names none; a file that holds none is refused.
result<std::vector<std::string>> read_api_keys(const cluster_config& config);

}  // namespace lethe
