#include "parallel/device_answers.hpp"

#include <algorithm>

#include "runtime/base/wipe.hpp"

namespace lethe {

device_answers::device_answers(accelerator& on, const device_room& room)
    : on_(on),
      rows_(room.logit_rows),
      vocab_(room.vocab),
      memory_(on, memory_kind::pinned, vocab_ == 0 ? 0 : rows_ * (vocab_ + 1) * sizeof(float)) {
  wipe_all();
}

device_error device_answers::bring(const step_plan& plan, const device_buffers& from) {
  if (vocab_ == 0) return 0;
  device_error error = 0;
  for_rows_told(plan, [this, &from, &error](size_t first, size_t count) {
    const float* rows = from.logits + first * vocab_;
    if (error == 0) error = on_.copy(row(first), rows, count * vocab_ * sizeof(float));
  });
  if (error != 0 || plan.draws.empty()) return error;
  return on_.copy(drawn(), from.drawn, plan.draws.size() * sizeof(uint32_t));
}

void device_answers::give(const step_plan& plan, const step_data& to) const {
  if (vocab_ == 0) return;
  for_rows_told(plan, [this, &to](size_t first, size_t count) {
    std::copy_n(row(first), count * vocab_, to.logits + first * vocab_);
  });
  std::copy_n(drawn(), plan.draws.size(), to.drawn);
}

void device_answers::wipe(const step_plan& plan) {
  if (vocab_ == 0) return;
  for_rows_told(plan, [this](size_t first, size_t count) {
    lethe::wipe(row(first), count * vocab_ * sizeof(float));
  });
  lethe::wipe(drawn(), plan.draws.size() * sizeof(uint32_t));
}

void device_answers::wipe_all() { lethe::wipe(memory_.data(), memory_.size()); }

}  // namespace lethe
