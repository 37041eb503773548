#pragma once

#include <cstddef>

namespace lethe {

/// No CPU kernel's frames reach deeper, so what they leave on a stack can be wiped.
inline constexpr size_t kernel_stack_bytes = size_t{256} << 10;

}  // namespace lethe
