#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "actors/cluster/node.hpp"

namespace lethe {

class devices;

// Under these keys ranks tell each other that they have loaded what they need, and of which file:
// the mark of their weights.
inline std::string weights_key(uint32_t rank) {
  return fmt::format("rank {} has its weights", rank);
}
inline constexpr std::string_view all_weights_key = "all have their weights";
inline constexpr std::chrono::hours weights_patience{24};

/// What the process of a rank that does not lead runs; its exit status. `beside`: a rank of this
/// host has started it, and on cores gives it the weights; else it starts those of this host.
int run_rank_process(uint32_t rank, const node_tls& tls, bool beside, devices& here);

}  // namespace lethe
