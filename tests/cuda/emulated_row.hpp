#pragma once

#include "tests/cuda/machine.hpp"

namespace lethe {

/// The table of `cuda` with every body run by a machine, which stands in for the stream.
extern const cuda_row emulated_row;

}  // namespace lethe
