#pragma once

#include <chrono>
#include <cstdint>

namespace lethe {

/// Nanoseconds of one rank by operation, summed over its steps, as its lead saw them.
struct step_times {
  uint64_t steps = 0;
  uint64_t wipe = 0, embed = 0, norm = 0, qkv = 0, rope = 0, attention = 0, o = 0;
  uint64_t gate_up = 0, down = 0, head = 0, comm = 0;
  uint64_t lead_cpu = 0;  // of all layers, as the processor counts: no time that others had it
};

/// Splits the time of a step: each lap ends an operation. Asks no clock unless it is on.
class stopwatch {
 public:
  explicit stopwatch(bool on) : on_(on) {}

  void start() {
    if (on_) last_ = clock::now();
  }
  void lap(uint64_t& into) {
    if (!on_) return;
    clock::time_point now = clock::now();
    into += uint64_t(std::chrono::nanoseconds(now - last_).count());
    last_ = now;
  }

 private:
  using clock = std::chrono::steady_clock;
  bool on_;
  clock::time_point last_;
};

}  // namespace lethe
