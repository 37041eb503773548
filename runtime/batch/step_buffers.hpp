#pragma once

#include <vector>

#include "parallel/step_plan.hpp"
#include "runtime/arena/arena.hpp"
#include "runtime/base/bytes.hpp"
#include "runtime/base/result.hpp"
#include "runtime/batch/sampler.hpp"

namespace lethe {

/// One step in flight: its plan, and the ids and logits that belong to it.
struct step_slot {
  uint32_t index = 0;
  step_plan plan;
  uint32_t* token_ids = nullptr;
  float* logits = nullptr;
  uint32_t* drawn = nullptr;  // by the ranks
  bool busy = false;
  uint64_t submitted_ns = 0;
  bool wipe_due = false;                       // a sequence ended while it was in flight
  uint32_t ids_touched = 0, rows_touched = 0;  // since the last wipe
};

/// Each takes room of its own, some 24 bytes for an id of the vocabulary.
inline constexpr uint32_t drawers_max = 8;

/// The data plane of a replica's steps on the host, and the samplers' scratch. What a step left
/// is wiped before a sequence that took part counts as gone.
class step_buffers {
 public:
  /// `drawers`: threads that draw tokens at once.
  static result<step_buffers> make(uint32_t depth, uint32_t step_tokens, uint32_t logit_rows,
                                   uint32_t vocab, uint32_t drawers = 1);

  /// A slot that is not in flight. There must be one.
  step_slot& take();
  /// The plan and data that the slot holds are in use until give_back.
  void give_back(step_slot& slot);
  step_slot& slot(uint32_t i) { return slots_[i]; }
  /// A sequence ended: wipes idle slots and all scratch now, the others when they are given back.
  void wipe_ended();
  /// Everything; no slot is in flight any more.
  void wipe_all();
  uint32_t drawers() const { return uint32_t(scratch_.size()); }
  sampler_scratch& scratch(uint32_t drawer) { return scratch_[drawer]; }
  /// All ids, logits and scratch, for tests and the audit.
  bytes_view bytes() const { return bytes_; }

 private:
  step_buffers(arena memory, uint32_t vocab) : memory_(std::move(memory)), vocab_(vocab) {}
  void wipe_slot(step_slot& slot);

  arena memory_;
  std::vector<step_slot> slots_;
  std::vector<sampler_scratch> scratch_;
  bytes_view bytes_;
  uint32_t vocab_;
};

}  // namespace lethe
