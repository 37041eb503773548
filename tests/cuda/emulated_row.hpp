#pragma once

#include "tests/cuda/machine.hpp"

namespace lethe {

/// The tables of `cuda` and `cuda_tensor` with every body run by a machine, which stands in for the
/// stream.
extern const cuda_row emulated_row, emulated_tensor_row;

}  // namespace lethe
