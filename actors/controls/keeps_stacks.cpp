// What calls leave on their threads' stacks stays there.
#include "runtime/base/wipe_stack.hpp"

void lethe::wipe_stack(size_t) noexcept {}
