#pragma once

#include "parallel/device_room.hpp"

namespace lethe {

/// Pinned memory that a step's logits and drawn ids come to, on the rank that has them; it holds
/// nothing between steps.
class device_answers {
 public:
  device_answers(accelerator& on, const device_room& room);

  bool has_memory() const { return memory_.data() != nullptr || vocab_ == 0; }
  /// Queues the way out of what was drawn, and of logits that nobody drew from.
  device_error bring(const step_plan& plan, const device_buffers& from);
  /// Once the device is done.
  void give(const step_plan& plan, const step_data& to) const;
  /// What the plan brought.
  void wipe(const step_plan& plan);
  void wipe_all();

 private:
  float* row(size_t i) const { return reinterpret_cast<float*>(memory_.data()) + i * vocab_; }
  uint32_t* drawn() const { return reinterpret_cast<uint32_t*>(row(rows_)); }

  accelerator& on_;
  const size_t rows_, vocab_;  // 0: another rank's
  const device_memory memory_;
};

}  // namespace lethe
