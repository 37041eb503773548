#pragma once

#include <memory>

#include "parallel/shard.hpp"

namespace lethe {

struct grid_config {
  cut ranks;
  const cpu_row* row = nullptr;
  uint32_t threads = 1;        // per rank
  kv_type kv = kv_type::f32;
  uint32_t page_tokens = 16;
  uint32_t pages = 0;
  uint32_t step_tokens = 512;
  uint32_t logit_rows = 64;
};

/// A replica inside one process: tensor x pipeline ranks, a thread (and its team) each, that take
/// steps from a ring and tell through a word when they are done. One thread drives it.
class grid {
 public:
  static result<std::unique_ptr<grid>> start(const model_weights& weights, const grid_config& config);
  virtual ~grid() = default;  // stops and joins; pages and scratch are wiped

  /// Steps that may be in flight at once: one per pipeline stage.
  virtual uint32_t depth() const = 0;
  /// Hands a step to all ranks. plan and data must live until it was waited for.
  virtual void submit(const step_plan& plan, const step_data& data) = 0;
  /// Waits for the oldest step in flight. An error is final: the grid is dead.
  virtual result<void> wait_oldest() = 0;
  /// From any thread: whoever waits gets an error.
  virtual void abort() = 0;

  /// For tests and the audit.
  virtual uint32_t ranks() const = 0;
  virtual const shard& rank(uint32_t i) const = 0;
};

}  // namespace lethe
