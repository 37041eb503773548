#pragma once

#include <string>

namespace lethe {

/// Every key of a cluster file with its type, default, bounds and help, as TOML that could be
/// edited: written from the schema, so that it can't be wrong.
std::string config_reference();

}  // namespace lethe
