#pragma once

#include <cstdint>
#include <span>

#include "runtime/model/load.hpp"
#include "runtime/model/load_layout.hpp"
#include "runtime/model/load_needed.hpp"

namespace lethe {

/// Writes what is needed of the checkpoint's tensors where the layout says, on the calling thread
/// and threads - 1 others. Pages of the file are released as each tensor is done. `progress` is
/// called from the calling thread with bytes of the layout, rising, at last with all needed. False:
/// it was asked to stop.
bool fill_weights(const checkpoint& from, const load_layout& layout, const needed_bytes& needed,
                  const load_options& how, std::span<std::byte> to);

}  // namespace lethe
