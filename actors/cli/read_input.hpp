#pragma once

#include <string>

#include "runtime/base/result.hpp"

namespace lethe {

/// All of standard input, or of a file if `path` is not "-".
result<std::string> read_input(const std::string& path);

}  // namespace lethe
