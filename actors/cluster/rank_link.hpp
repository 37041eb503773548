#pragma once

#include "parallel/gloo_communicator.hpp"
#include "parallel/grid.hpp"
#include "runtime/model/load.hpp"
#include "schemas/messages.capnp.h"

namespace lethe {

/// How one rank of an engine talks to the others.
struct rank_link {
  gloo_config base;
  bool spin = false;  // its threads may wait busily
};
result<rank_link> link_of(schema::EngineSpec::Reader spec, const grid_config& config, uint32_t rank,
                          key_bytes secret);

/// What the ranks of this one's host read of the weights.
model_share share_beside(schema::EngineSpec::Reader spec, uint32_t rank);
/// Ranks that are on the same host as this one, itself among them.
std::vector<uint32_t> ranks_beside(schema::EngineSpec::Reader spec, uint32_t rank);

}  // namespace lethe
