#pragma once

#include <algorithm>
#include <string>

#include "runtime/cluster/measures.hpp"
#include "schemas/control.capnp.h"

namespace lethe {

/// What happened since the cluster came up.
struct cluster_counters {
  uint64_t prefilled = 0, decoded = 0, pages_wiped = 0;
  uint64_t admitted = 0, turned_away = 0;
  uint64_t served = 0, refused = 0, cancelled = 0, failed = 0;
  uint64_t arenas_wiped = 0, bytes_wiped = 0;
  uint32_t restarts = 0;
  measures requests;

  uint64_t ended() const { return served + refused + cancelled + failed; }
};

/// What pages and metrics need of a status.
struct cluster_numbers {
  schema::Profile profile = schema::Profile::STRICT;
  std::string model;
  uint64_t up_ms = 0;
  uint32_t wanted = 0, ready = 0, stalled = 0, context = 0;
  bool leaving = false;
  uint32_t running = 0, queued = 0;
  uint64_t pages = 0, reserved = 0, resident = 0;
  cluster_counters counters;

  double kv_share() const { return pages ? double(reserved) / double(pages) : 0; }
};

cluster_numbers numbers_of(schema::Status::Reader status);

/// An engine with requests that says nothing for so long is not ready: ten signs of life, or of the
/// loads that engines tell five times a second.
constexpr uint32_t silent_after_ms(uint32_t heartbeat_ms) {
  return std::max(10 * heartbeat_ms, 2000u);
}

/// Whoever may read metrics twice must not learn how long a single request was. In the lab profile
/// all is shown at once. In the others counters stay as they are until `requests_least` more
/// requests have ended and `hold_ms` have passed; what says lengths is rounded, and histograms of
/// lengths are not shown. What others of the same lot asked can be known to whoever asked it, so
/// this bounds what is learnt, and is no proof against many.
class metrics_gate {
 public:
  static constexpr uint64_t requests_least = 16, hold_ms = 10'000;
  /// Of its bounds, since a sum would say more than the buckets do.
  static constexpr uint64_t tokens_rounded = 4096, pages_rounded = 256, bytes_rounded = 64u << 20;

  cluster_numbers shown(cluster_numbers n);

 private:
  cluster_counters released_;
  uint64_t released_ms_ = 0;
};

/// In Prometheus' text format 0.0.4.
std::string metrics_text(const cluster_numbers& n);

}  // namespace lethe
