#pragma once

#include "actors/cluster/rank_link.hpp"
#include "parallel/device_rank.hpp"

namespace lethe {

/// The device on which a rank was placed; none: it computes on cores.
std::optional<uint32_t> device_of(schema::EngineSpec::Reader spec, uint32_t rank);
rank_kind kind_of(schema::EngineSpec::Reader spec);

/// What its process does first, before it has a second thread: what devices' libraries read of the
/// environment is closed.
result<void> prepare_device(schema::EngineSpec::Reader spec, uint32_t rank, devices& here);

/// Puts a rank's part of the weights on the device where it was placed, with its share of this
/// host's cores.
result<loaded_device> load_for(schema::EngineSpec::Reader spec, uint32_t rank, devices& here,
                               const weight_source& from,
                               const std::function<void(uint64_t, uint64_t)>& progress);

/// Makes the rank that was loaded there.
rank_maker maker_of(schema::EngineSpec::Reader spec, const gloo_config& base, devices& here,
                    loaded_device loaded);

}  // namespace lethe
