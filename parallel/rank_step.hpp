#pragma once

#include "parallel/plan_bytes.hpp"
#include "parallel/process_ranks.hpp"

// What the leader of a replica of processes and its other ranks have in common.

namespace lethe {

/// All ranks must serve the same model in the same way: the leader says how, the others compare.
result<void> agree(const model_weights& weights, const grid_config& config, communicator& plans);

result<std::unique_ptr<step_rank>> make_rank(const model_weights& weights,
                                             const grid_config& config, rank_groups& groups,
                                             bool spin, const rank_maker& make);

/// One plan from the leader to all: it has written it, the others will read it.
result<void> share(communicator& plans, plan_bytes& plan);

/// The rank that holds the logits: the last stage's first.
constexpr uint32_t logits_from(const cut& ranks) { return (ranks.pipeline - 1) * ranks.tensor; }

/// What a step gave, from that rank to the leader: ids that were drawn, rows of logits that were
/// not. On the way these lie back to back, at the front of data.logits; nothing else there counts.
result<void> tell_answer(communicator& results, const step_plan& plan, const step_data& data,
                         uint32_t vocab);
result<void> hear_answer(communicator& results, const step_plan& plan, const step_data& data,
                         uint32_t vocab, uint32_t from);

/// Whether ranks must say that they are done with a step. Where there are logits nobody need say
/// so: every rank's last act of the step is to send what another one's logits are made of.
inline bool ends_unseen(const step_plan& plan) { return plan.logit_rows == 0; }
/// Waits for those who tell this rank, from stage to stage and in the last one to its first rank.
/// No rank so waits for more than its neighbours, and the pipeline stays full.
result<void> hear_done(communicator& results, const cut& ranks);
/// Tells the next, unless that is the leader.
result<void> tell_done(communicator& results, const cut& ranks);

}  // namespace lethe
