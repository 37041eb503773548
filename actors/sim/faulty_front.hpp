#pragma once

#include "actors/cluster/messages.hpp"
#include "actors/sim/ledger.hpp"

namespace lethe::sim {

/// Stands between an engine and the rest of the cluster and makes one mistake:
/// stale_epoch: gives the epoch that is wanted for the one that the engine has;
/// stuck_drain: some orders to drain never arrive.
caf::behavior faulty_front(caf::event_based_actor* self, bug planted, uint32_t epoch_wanted,
                           directory_actor directory);

}  // namespace lethe::sim
