#pragma once

#include <cstdint>
#include <vector>

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
  uint32_t tokens = 0;
  uint32_t logit_rows = 0;
  /// A sequence ended since the last step: scratch that its activations touched is wiped, too.
  bool wipe_scratch = false;
};

/// The data plane of a step inside one process. Owned by the step loop, wiped with its sequences.
struct step_data {
  const uint32_t* token_ids = nullptr;  // [plan.tokens]
  float* logits = nullptr;              // [plan.logit_rows][vocab], filled by the last stage
  /// The caller does nothing but wait for the step: a single rank may compute on its thread.
  bool caller_waits = false;
};

}  // namespace lethe
