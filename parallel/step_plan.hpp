#pragma once

#include <cstdint>
#include <vector>

#include "kernels/draw_policy.hpp"

namespace lethe {

/// Tokens of one sequence that a step computes: positions position .. position+tokens-1.
struct plan_entry {
  uint32_t sequence;  // the planner's id; means nothing to a shard
  uint32_t position;
  uint32_t tokens;       // one for a decode, a chunk for a prefill
  uint32_t first_token;  // index of its first token in the step's token ids
  uint32_t first_page;   // its page table is pages[first_page, first_page + page_count)
  uint32_t page_count;
  /// Logits are computed for the entry's last `logit_rows` tokens (0: a prefill chunk that is not
  /// the last; 1: the usual; tokens: prompt logprobs).
  uint32_t logit_rows;
  uint32_t first_logit_row;  // of the step's logits
};

/// The first `tokens` rows of page `from` are copied to page `to` before the step computes
/// (copy-on-write of a shared prompt's last page).
struct page_copy {
  uint32_t from, to, tokens;
};

/// What one step does, as numbers without content: token ids and activations live elsewhere
/// (`step_data`). A shard first wipes, then copies, then computes.
struct step_plan {
  uint64_t id = 0;
  std::vector<plan_entry> entries;
  std::vector<uint32_t> pages;  // the page tables, back to back
  std::vector<page_copy> copies;
  std::vector<uint32_t> wipes;  // pages of ended sequences; free again when the step is done
  /// Rows whose tokens the ranks draw, where they do (`step_ranks::draws`): in order, each once.
  /// Only the others come as logits.
  std::vector<row_draw> draws;
  uint32_t tokens = 0;
  uint32_t logit_rows = 0;
  /// A sequence ended since the last step: scratch that its activations touched is wiped, too.
  bool wipe_scratch = false;
};

/// f(first, count) for the stretches of rows that come as logits.
template <class F>
void for_rows_told(const step_plan& plan, F f) {
  uint32_t row = 0;
  for (const row_draw& d : plan.draws) {
    if (d.row != row) f(row, d.row - row);
    row = d.row + 1;
  }
  if (row != plan.logit_rows) f(row, plan.logit_rows - row);
}

/// The data plane of a step inside one process. Owned by the step loop, wiped with its sequences.
struct step_data {
  const uint32_t* token_ids = nullptr;  // [plan.tokens]
  /// [plan.logit_rows][vocab], of which the last stage fills the rows that are not drawn.
  float* logits = nullptr;
  uint32_t* drawn = nullptr;  // [plan.draws.size()], the ids, by the last stage
  /// The caller does nothing but wait for the step: a single rank may compute on its thread.
  bool caller_waits = false;
};

}  // namespace lethe
