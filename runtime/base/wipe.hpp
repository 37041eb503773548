#pragma once

#include <cstddef>

namespace lethe {

/// Zeroes [at, at + bytes) in a way that no compiler drops, however dead the memory is.
void wipe(void* at, size_t bytes) noexcept;

}  // namespace lethe
