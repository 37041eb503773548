#pragma once

#include <cstddef>
#include <vector>

#include "parallel/cut.hpp"
#include "runtime/base/bytes.hpp"

namespace lethe {

/// What one rank reads of the panels, in pieces. Vectors are not among them: they are small, and
/// every rank may read all.
std::vector<bytes_view> reads_of(const model_weights& weights, const shard_part& part);

}  // namespace lethe
