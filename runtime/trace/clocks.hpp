#pragma once

#include <vector>

#include "runtime/trace/gathered.hpp"

namespace lethe {

/// How a process's times become the directory's.
struct aligned_clock {
  int64_t offset_ns = 0;
  uint64_t error_ns = 0;      // give or take
  bool contradicted = false;  // processes of its host disagree by more than their errors
};

/// One for each process. Those of one host read the same steady clock, so the host's offset lies
/// within what every one of them says, and is known better than from one alone.
std::vector<aligned_clock> align_clocks(const gathered& all);

}  // namespace lethe
