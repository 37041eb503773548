#pragma once

#include <deque>
#include <functional>

#include "runtime/batch/step_loop.hpp"

namespace lethe::audit {

/// An engine whose plan, steps and sampling are the real ones, and whose ranks say an answer that
/// is known beforehand. Whoever has it turns it, and says what passes while a step is computed.
class played_engine final : public engine {
 public:
  using waiting = std::function<void(const step_plan&)>;

  static result<std::unique_ptr<played_engine>> make(uint32_t vocab, uint32_t stop_id,
                                                     waiting while_computing);
  ~played_engine() override;

  /// What the next request is answered; then it stops. One request at a time.
  void play(std::vector<uint32_t> ids);
  step_loop::turned turn() { return loop_->turn(); }
  void set_clock(std::function<uint64_t()> now_ns) { loop_->now = std::move(now_ns); }

  result<void> fits(const request& r) const override;
  result<void> submit(request& r) override;
  void stop(request& r, uint32_t choice) override;
  void cancel(request& r) override;
  engine_numbers numbers() const override { return loop_->board.numbers(); }
  const engine_config& config() const override { return config_; }
  const grid& ranks() const override;
  bytes_view step_bytes() const override { return loop_->buffers().bytes(); }
  result<void> health() const override { return loop_->board.health(); }

 private:
  struct script {
    std::vector<uint32_t> ids;
    size_t said = 0;
    uint32_t vocab = 0, stop_id = 0;
    waiting while_computing;
  };
  class played_ranks;
  played_engine() = default;

  std::shared_ptr<script> script_;
  engine_config config_;
  planner_config plan_;
  std::unique_ptr<step_loop> loop_;
  uint64_t next_id_ = 1;
};

}  // namespace lethe::audit
