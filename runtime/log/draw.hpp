#pragma once

#include <functional>

#include "runtime/crypto/random.hpp"
#include "runtime/log/roster.hpp"

namespace lethe {

using randomness = std::function<void(std::span<std::byte>)>;

/// Uniform below `end`, which is at least 1, and exactly so: a draw that does not fit is thrown
/// away.
uint64_t uniform_below(uint64_t end, const randomness& random);

/// `k` nodes of a roster that is not empty, with replacement, each in exact proportion to capacity:
/// their places in `leaves`.
std::vector<uint32_t> draw_nodes(const roster& from, uint32_t k,
                                 const randomness& random = fill_random);

}  // namespace lethe
