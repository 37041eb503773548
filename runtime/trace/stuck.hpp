#pragma once

#include "runtime/trace/timeline.hpp"

namespace lethe {

/// Who must act before anything of a request goes on.
struct awaited {
  actor_tag actor;             // of no kind: whoever is in that process
  uint32_t process = nowhere;  // if it was asked for its records
};

/// A request that was submitted, not released, and not told to be lost.
struct stuck_request {
  const traced_request* request = nullptr;
  int64_t silent_ns = 0;  // since anything of it was last in hand
  uint32_t last = 0;      // its latest event
  /// At the end of its chain, where one actor waits for another: any of these. Empty: an engine
  /// that has not taken what was passed on to it.
  std::vector<awaited> waits_for;
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
