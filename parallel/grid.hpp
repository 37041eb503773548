#pragma once

#include <memory>

#include "parallel/shard.hpp"
#include "parallel/step_ranks.hpp"

namespace lethe {

struct grid_config {
  cut ranks;
  const cpu_row* row = nullptr;
  uint32_t threads = 1;  // per rank
  kv_type kv = kv_type::f32;
  uint32_t page_tokens = 16;
  uint32_t pages = 0;
  uint32_t step_tokens = 512;
  uint32_t logit_rows = 64;
  bool timed = false;
  size_t spans_bytes = spans_bytes_max;
};

/// What one of its ranks is made of. `spin`: its threads may wait busily.
shard_config rank_config(const grid_config& c, const shard_part& part, bool spin);

/// A replica inside one process: tensor x pipeline ranks, a thread (and its team) each, that take
/// steps from a ring and tell through a word when they are done. One thread drives it.
class grid final : public step_ranks {
 public:
  /// The weights outlive the grid.
  static result<std::unique_ptr<grid>> start(const model_weights& weights,
                                             const grid_config& config);
  ~grid() override;  // stops and joins; pages and scratch are wiped

  /// Steps that may be in flight at once: one per pipeline stage.
  uint32_t depth() const;
  void submit(const step_plan& plan, const step_data& data) override;
  /// After an error the grid is dead and its ranks have stopped.
  result<void> wait_oldest() override;
  /// Those of its first rank.
  uint32_t idle() const override;
  void run_idle(const work& f) override;
  /// From any thread: whoever waits gets an error, as soon as the ranks notice.
  void abort();

  /// For tests and the audit.
  uint32_t ranks() const;
  const shard& rank(uint32_t i) const;

 private:
  struct parts;
  explicit grid(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
};

}  // namespace lethe
