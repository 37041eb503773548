#pragma once

#include "runtime/audit/placement.hpp"

/// A scheduler that wants a victim's requests at one node, and lies.
namespace lethe::audit {

struct steering_settings {
  std::vector<uint32_t> capacities = {100, 100, 100, 100};
  /// Bodies for the cheapest lie; 0: as many as find 1.1 times the bound. The other lies get what
  /// finds 1.25 times the bound.
  uint32_t bodies = 0, bodies_each = 0;
  uint32_t candidates = 1;
  progress tell = {};
};

/// How many of a victim's bodies the wanted node opened, when the scheduler treats every request so
/// that wasn't drawn for it, and the application asks again until its client refuses.
struct steered_bodies {
  proportion opened;
  uint64_t other_openings = 0;
  std::string said;  // by the client, of the first body that got nowhere
};
result<steered_bodies> steer(treatment how, uint32_t bodies, const steering_settings& settings,
                             bool as_new_processes = false);

/// 1 - (1 - f)^(k (1 + r)) for node 0, whatever the scheduler does. Control: a client that forgets
/// what it drew for a body.
finding measure_steering(const steering_settings& settings = {});

struct pair_placement_settings {
  placement_settings placed = {.talks = 2'500, .candidates = 2, .all_open = true};
  steering_settings steered = {.bodies = 500, .candidates = 2};
};
/// What k = 2 promises: its bound, and that it is the same for all.
finding measure_two_candidates(const pair_placement_settings& settings = {});

}  // namespace lethe::audit
