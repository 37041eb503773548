#pragma once

#include "parallel/idle_threads.hpp"
#include "parallel/step_plan.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// One rank's part of a replica's steps: on cores (`shard`) or on a device (`device_rank`).
class step_rank : public idle_threads {
 public:
  /// Runs one step and returns when this rank's part is done. The last stage's tensor rank 0 has
  /// then filled data.logits and data.drawn. A plan that does not fit is refused before anything is
  /// touched.
  virtual result<void> execute(const step_plan& plan, const step_data& data) = 0;
  /// Whether plans may have draws.
  virtual bool draws() const { return false; }
  /// Ends a step that waits for other ranks by anything but the replica's groups. From any thread.
  virtual void abort() {}
};

}  // namespace lethe
