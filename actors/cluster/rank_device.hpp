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

/// Makes that rank where it was placed. On a device the model's weights leave this process's memory
/// once they are there.
rank_maker maker_of(schema::EngineSpec::Reader spec, uint32_t rank, const gloo_config& base,
                    devices& here, loaded_model& model);

}  // namespace lethe
