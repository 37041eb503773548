#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/audit/finding.hpp"
#include "runtime/audit/progress.hpp"

/// What it costs that clients draw their nodes themselves: a simulation of many nodes, against
/// routers that see everything and may choose.
namespace lethe::audit {

/// `drawn_k`: the client draws k nodes, evenly and each on its own; the first that admits the
/// request has it; when all refuse it draws again, at once, up to r times; then it is turned away.
/// `shortest`: a router knows every node's number of requests and takes a node with the fewest.
/// `affinity`: a router sends a conversation's next turn to the node that holds its cache, if the
/// wait there is less than what the cache saves on average; else as `shortest`.
enum class routing : uint8_t { drawn_1, drawn_2, drawn_3, shortest, affinity };
inline constexpr std::array routings = {routing::drawn_1, routing::drawn_2, routing::drawn_3,
                                        routing::shortest, routing::affinity};
const char* name_of(routing r);

/// Requests come as a Poisson stream; each takes a slot of its node for an exponential time, of
/// mean 1, and waits its turn before that. `load` is what comes, without any cache, over what all
/// slots can do.
struct routing_settings {
  uint32_t nodes = 10'000;
  uint64_t requests = 1'000'000;  // for each point; the first third is not counted
  uint32_t slots = 4, waits = 8;  // of a node: served together; admitted besides. 16 in all
  uint32_t redraws = 2;
  double later_turns = 0.75;  // share of requests that go on with a conversation
  double saved = 0.5;         // of such a request's work, by its cache
  std::vector<double> loads = {0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95};
  uint64_t seed = 1;
  progress tell = {};
};

/// Times are in mean times of service, of the requests that were served: from coming to beginning,
/// and from coming to end.
struct routing_point {
  double load = 0, busy = 0;  // what came; which share of the slots worked
  double wait_p99 = 0, p50 = 0, p99 = 0;
  double turned_away = 0, from_cache = 0;  // shares of requests
};
routing_point simulate_routing(routing by, double load, const routing_settings& settings);

/// How many are turned away where nothing is drawn again: M/M/c/K, exactly.
double turned_away_exactly(double load, uint32_t slots, uint32_t waits);

/// A price, so there is no bound that a cluster could break: it is held if the simulation agrees
/// with the arithmetic of queues where that knows the answer.
finding measure_routing_price(const routing_settings& settings = {});

}  // namespace lethe::audit
