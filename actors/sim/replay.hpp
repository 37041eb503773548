#pragma once

#include "runtime/serve/served_model.hpp"
#include "runtime/trace/schedule.hpp"

namespace lethe::sim {

struct replayed {
  std::string violation;  // of what must hold after each message; empty: it did
  uint64_t messages = 0;  // taken by anyone
  int64_t virtual_ns = 0;
  uint32_t served = 0, left = 0;
  timeline records;  // what its actors' own records tell
  std::vector<scheduled_message> taken;
};

/// Runs a schedule on real actors in virtual time: as many engines, requests of the recorded
/// lengths at the recorded times, each message held until its recorded time and its turn at its
/// taker. The same schedule gives the same run. An engine has room for all: neither its pages nor
/// what it computes are in a recording.
replayed replay(const replay_schedule& schedule, std::shared_ptr<const served_model> model);

}  // namespace lethe::sim
