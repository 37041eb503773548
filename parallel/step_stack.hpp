#pragma once

#include "kernels/kernel_stack.hpp"
#include "runtime/base/wipe_stack.hpp"

namespace lethe {

/// What a step leaves on the stack of a thread that computed it: the frames that call kernels are
/// small.
inline constexpr size_t step_stack_bytes = kernel_stack_bytes + (size_t{16} << 10);

}  // namespace lethe
