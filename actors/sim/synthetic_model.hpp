#pragma once

#include "runtime/serve/served_model.hpp"

namespace lethe::sim {

/// A model with a letter a token and no weights, for engines that compute nothing.
result<std::shared_ptr<const served_model>> synthetic_model();

}  // namespace lethe::sim
