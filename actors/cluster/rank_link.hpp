#pragma once

#include "parallel/gloo_communicator.hpp"
#include "parallel/grid.hpp"
#include "schemas/messages.capnp.h"

namespace lethe {

inline constexpr size_t rank_secret_bytes = 32;

/// How one rank of an engine talks to the others.
struct rank_link {
  gloo_config base;
  bool spin = false;  // its threads may wait busily
};
rank_link link_of(schema::EngineSpec::Reader spec, const grid_config& config, uint32_t rank,
                  key_bytes secret);

}  // namespace lethe
