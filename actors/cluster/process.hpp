#pragma once

#include <cstdint>

namespace lethe {

/// Memory of this process that is in RAM now.
uint64_t resident_bytes();

}  // namespace lethe
