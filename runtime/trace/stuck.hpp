#pragma once

#include "runtime/trace/timeline.hpp"

namespace lethe {

/// A request that was submitted and not released.
struct stuck_request {
  const traced_request* request = nullptr;
  int64_t silent_ns = 0;  // since anything of it was last in hand
  uint32_t last = 0;      // its latest event: whoever took that has it
};

/// The longest silent first; only those silent for at least so long.
std::vector<stuck_request> stuck_requests(const timeline& t, int64_t least_ns);

/// An actor whose messages wait longer and longer.
struct growing_queue {
  uint32_t process = 0;
  actor_tag actor;
  size_t messages = 0;
  int64_t before_ns = 0, after_ns = 0;  // median wait of the earlier and of the later half
};

// A queue grows if its later half waits twice as long as the earlier, and not just microseconds.
inline constexpr size_t growing_messages_least = 8;
inline constexpr int64_t growing_wait_least_ns = 1'000'000;

std::vector<growing_queue> growing_queues(const timeline& t);

}  // namespace lethe
