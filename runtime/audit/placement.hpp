#pragma once

#include "runtime/audit/draws.hpp"
#include "runtime/audit/small_cluster.hpp"

/// Where the requests of real clients land, by who opened their seals.
namespace lethe::audit {

struct placement_settings {
  std::vector<uint32_t> capacities = {100, 100, 100, 100};
  uint32_t users = 2;
  /// Each talk has so many turns, each of which sends again what was said before. The requests of a
  /// user are talks * turns; all users ask at the same time.
  uint32_t talks = 10'000, turns = 4;
  uint32_t candidates = 1;
  bool all_open = false;
  double full = 0.1;     // chance that a node which is asked is full, and says so
  uint32_t threads = 2;  // of each user
  double equal_within = 0.02;
  progress tell = {};
};

/// What came of it: every opening of a seal, and what went wrong.
struct placement {
  std::vector<double> shares;  // of capacity, by place in the roster
  uint32_t users = 0, talks = 0, turns = 0;
  std::vector<opening> openings;
  uint64_t answered = 0, failed = 0;
  uint64_t turned_away = 0;  // every draw was of a full node
  std::string first_failure;

  uint64_t asked() const { return uint64_t{users} * talks * turns; }
};
result<placement> place_requests(const placement_settings& settings);

/// Of any record, the measured ones and those made for a control.
/// Openings by user and node.
std::vector<std::vector<uint64_t>> table_of(const placement& p);
/// How the openings fit the shares, whoever asked.
fit fit_of(const placement& p);

struct equality {
  chi_square_result homogeneous;
  interval widest{};  // of all differences of two users' shares of a node, the one furthest from 0
  bool good(double within) const { return homogeneous.p >= alpha && widest.inside(within); }
};
equality equality_of(const placement& p);

/// How many of the spans of k requests of one user in a row a node saw something of, against
/// 1 - (1 - f)^(k candidates); the worst node.
struct exposed {
  uint32_t k = 1, node = 0;
  proportion seen;
  double due = 0, p = 1;  // two-sided
};
exposed exposed_in(const placement& p, uint32_t k, uint32_t candidates = 1);
std::string text_of(const exposed& e);

/// A record of requests that nobody asked, for a control: nodes as `nodes_for(user)` says.
placement made_up(std::vector<double> shares, uint32_t users, uint32_t requests,
                  const std::function<std::vector<uint32_t>(uint32_t user)>& nodes_for);

/// Candidates that are drawn without replacement show more than two draws that know nothing of each
/// other.
control distinct_candidates(std::span<const uint32_t> capacities);

/// Three lines of one run with one candidate: placement, equality, exposure; each with controls.
std::vector<finding> measure_placement(const placement_settings& settings = {});

}  // namespace lethe::audit
