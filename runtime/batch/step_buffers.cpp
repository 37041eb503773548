#include "runtime/batch/step_buffers.hpp"

#include <algorithm>

#include "runtime/base/wipe.hpp"

namespace lethe {

namespace {

constexpr size_t alignment = 64;
constexpr size_t padded(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

result<step_buffers> step_buffers::make(uint32_t depth, uint32_t step_tokens, uint32_t logit_rows,
                                        uint32_t vocab, uint32_t drawers) {
  check(drawers > 0);
  size_t ids = padded(step_tokens * sizeof(uint32_t));
  size_t drawn = padded(logit_rows * sizeof(uint32_t));
  size_t scratch = (sampler_scratch::bytes(vocab) + (size_t{64} << 10)) * drawers;
  size_t logits = padded(size_t{logit_rows} * vocab * sizeof(float));
  size_t each = ids + drawn + logits, slots = each * depth;
  auto memory = arena::make(slots + scratch);
  if (!memory) return memory.why();
  auto* at = static_cast<std::byte*>(memory->take(slots, alignment));
  if (!at) return fail("step buffers: out of memory; {} bytes are needed", slots);
  step_buffers made(std::move(*memory), vocab);
  for (uint32_t i = 0; i < drawers; ++i) made.scratch_.emplace_back(vocab, made.memory_.resource());
  for (uint32_t i = 0; i < depth; ++i) {
    step_slot slot;
    slot.index = i;
    slot.token_ids = reinterpret_cast<uint32_t*>(at + i * each);
    slot.drawn = reinterpret_cast<uint32_t*>(at + i * each + ids);
    slot.logits = reinterpret_cast<float*>(at + i * each + ids + drawn);
    made.slots_.push_back(std::move(slot));
  }
  made.bytes_ = {at, made.memory_.used()};
  return made;
}

step_slot& step_buffers::take() {
  auto idle = std::find_if(slots_.begin(), slots_.end(), [](auto& s) { return !s.busy; });
  check(idle != slots_.end());
  idle->busy = true;
  return *idle;
}

void step_buffers::give_back(step_slot& slot) {
  check(slot.busy);
  slot.busy = false;
  slot.ids_touched = std::max(slot.ids_touched, slot.plan.tokens);
  slot.rows_touched = std::max(slot.rows_touched, slot.plan.logit_rows);
  if (slot.wipe_due) wipe_slot(slot);
}

void step_buffers::wipe_ended() {
  for (auto& slot : slots_) {
    if (slot.busy)
      slot.wipe_due = true;
    else
      wipe_slot(slot);
  }
  for (auto& scratch : scratch_) scratch.wipe();
}

void step_buffers::wipe_all() {
  for (auto& slot : slots_)
    if (slot.busy) give_back(slot);
  wipe_ended();
}

void step_buffers::wipe_slot(step_slot& slot) {
  wipe(slot.token_ids, size_t{slot.ids_touched} * sizeof(uint32_t));
  wipe(slot.drawn, size_t{slot.rows_touched} * sizeof(uint32_t));
  wipe(slot.logits, size_t{slot.rows_touched} * vocab_ * sizeof(float));
  slot.ids_touched = slot.rows_touched = 0;
  slot.wipe_due = false;
}

}  // namespace lethe
