#pragma once

#include "runtime/base/result.hpp"
#include "schemas/config.capnp.h"

namespace lethe {

/// What the mapper checks as it reads a file, for a config that came as a message: numbers and
/// lists within their bounds, and no word that this build doesn't know.
result<void> check_bounds(schema::Config::Reader config);

}  // namespace lethe
