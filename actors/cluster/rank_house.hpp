#pragma once

#include "actors/cluster/engine_actor.hpp"
#include "actors/cluster/node.hpp"
#include "actors/cluster/rank_door.hpp"
#include "parallel/grid.hpp"
#include "parallel/step_ranks.hpp"
#include "schemas/messages.capnp.h"

namespace lethe {

class devices;
struct served_model;

/// What ranks of this host have.
struct rank_host {
  node_tls tls;
  devices& on;
};

/// Where the ranks of an engine come in, if they are processes. Open before the weights are loaded:
/// other hosts load theirs meanwhile.
result<std::unique_ptr<rank_door>> open_door(schema::EngineSpec::Reader spec, const node_tls& tls);

/// The ranks of an engine as processes. This one computes the first and leads; those of this host
/// share its weights, or each loads its device, those of others are started by their supervisors.
/// `progress`: of this one's device.
result<std::unique_ptr<step_ranks>> start_ranks(schema::EngineSpec::Reader spec,
                                                std::unique_ptr<rank_door> door,
                                                const rank_host& here, const served_model& model,
                                                const grid_config& config,
                                                const load_progress& progress);

}  // namespace lethe
