#pragma once

#include "runtime/trace/timeline.hpp"

namespace lethe {

/// Where a request's time went. Each moment counts once, for the first that applies.
struct time_share {
  int64_t handling_ns = 0;  // some actor had a message of it in hand
  int64_t transfer_ns = 0;  // a message was under way to another process, or waited there
  int64_t waiting_ns = 0;   // one waited inside a process
  int64_t between_ns = 0;   // none existed: model steps, sockets, the client

  int64_t total_ns() const { return handling_ns + transfer_ns + waiting_ns + between_ns; }
};

time_share share_of(const timeline& t, const traced_request& r);

}  // namespace lethe
