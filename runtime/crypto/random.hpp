#pragma once

#include <cstddef>
#include <span>

namespace lethe {

/// From the system's generator. A process that has none ends.
void fill_random(std::span<std::byte> to);

}  // namespace lethe
