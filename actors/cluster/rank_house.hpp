#pragma once

#include "parallel/grid.hpp"
#include "parallel/step_ranks.hpp"
#include "runtime/model/load.hpp"
#include "runtime/wire/message_limits.hpp"

namespace lethe {

/// The ranks of an engine as processes of this host. This one computes the first and leads; the
/// others end with it, and share its weights. `order` is the engine's own.
result<std::unique_ptr<step_ranks>> start_ranks(const wire<schema::StartEngine>& order,
                                                const loaded_model& model,
                                                const grid_config& config);

/// What each of the others runs; its exit status.
int run_rank_process(uint32_t rank);

}  // namespace lethe
