#pragma once

#include "parallel/idle_threads.hpp"
#include "parallel/step_plan.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// Executes steps in the order in which they are submitted: the ranks of a replica, or what stands
/// for them in a simulation. One thread drives it.
class step_ranks : public idle_threads {
 public:
  /// The plan, and what data points to, must live until it was waited for.
  virtual void submit(const step_plan& plan, const step_data& data) = 0;
  /// Waits for the oldest step in flight. An error is final: no step in flight is read or written
  /// any more.
  virtual result<void> wait_oldest() = 0;
  /// Whether plans may have draws: who does not draw brings all logits.
  virtual bool draws() const { return false; }
  /// Why they can't execute any more, where that shows between steps. From any thread.
  virtual result<void> health() const { return {}; }
};

}  // namespace lethe
