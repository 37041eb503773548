#pragma once

#include <string>
#include <string_view>

#include "kernels/matrix.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// "f32, f16, bf16, q8_0, ..."
std::string dtype_names();
result<dtype> dtype_named(std::string_view name);

}  // namespace lethe
