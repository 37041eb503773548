#pragma once

#include "runtime/trace/timeline.hpp"

namespace lethe {

/// Of many durations; by nearest rank.
struct quantiles {
  size_t count = 0;
  int64_t p50_ns = 0, p99_ns = 0, most_ns = 0;
};
quantiles quantiles_of(std::vector<int64_t> values);

/// Messages of one type, taken by one kind of actor.
struct message_stats {
  uint64_t type = 0;
  actor_kind receiver = actor_kind::none;
  size_t count = 0;
  quantiles queue;  // of those whose sender's clock is known
  quantiles handling;
};

enum class slow_by : uint8_t { queue, handling };

/// The slowest first, by its 99th percentile.
std::vector<message_stats> slowest(const timeline& t, slow_by by);

/// What is compared: a whole timeline, or one request of it.
struct trace_side {
  const timeline* of = nullptr;
  const traced_request* request = nullptr;
};

/// By type, whoever took them.
std::vector<message_stats> stats_by_type(const trace_side& side);

struct stats_pair {
  uint64_t type = 0;
  message_stats a, b;  // a count of 0: on the other side only
};
std::vector<stats_pair> diff(const trace_side& a, const trace_side& b);

}  // namespace lethe
