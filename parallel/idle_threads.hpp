#pragma once

#include <cstdint>
#include <functional>

namespace lethe {

/// Threads that have nothing to do between steps. The caller is one of them, number 0.
class idle_threads {
 public:
  using work = std::function<void(uint32_t thread)>;

  virtual ~idle_threads() = default;
  virtual uint32_t idle() const { return 1; }
  /// Calls f on each of them and returns when all have; while no step is executed.
  virtual void run_idle(const work& f) { f(0); }
};

}  // namespace lethe
