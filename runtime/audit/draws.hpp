#pragma once

#include "runtime/audit/finding.hpp"
#include "runtime/audit/progress.hpp"
#include "runtime/audit/statistics.hpp"
#include "runtime/log/roster.hpp"

/// Whether nodes get what their capacities promise them: of draws, by the function that the shipped
/// client calls, with the operating system's generator.
namespace lethe::audit {

/// A roster as far as a draw looks at it.
roster roster_of(std::span<const uint32_t> capacities);
std::vector<double> shares_of(const roster& nodes);

/// Counts of nodes against shares: all of them together, and each alone for getting too much.
struct fit {
  chi_square_result all;
  double node_p = 1;  // the smallest of the nodes'
  double most = 1;    // what the most favoured node got, over what it should
  bool good() const { return all.p >= alpha && node_p >= alpha; }
};
fit fit_of(std::span<const uint64_t> counts, std::span<const double> shares);
std::string text_of(const fit& f);

/// What shares come to, for a reader: "100, 100, 200".
std::string text_of(std::span<const uint32_t> capacities);

struct draw_settings {
  std::vector<uint32_t> capacities = {100, 100, 100, 100};
  uint64_t draws = 0;  // 0: as many as a bias of 1.1 on any node needs
  uint64_t beside = 1'000'000;
  progress tell = {};
};
/// One draw for each request. Controls: each node with 1.1 times its share.
finding measure_draws(const draw_settings& settings = {});

/// Two draws of a client that insists on two machines: none that ships does.
std::vector<uint32_t> distinct_nodes(const roster& nodes);

struct pair_settings {
  std::vector<uint32_t> capacities = {100, 100, 100, 100};
  uint64_t pairs = 200'000;
};
/// Two candidates of one request: each pair as often as two draws that know nothing of each other.
/// Control: candidates that are never the same node.
finding measure_pairs(const pair_settings& settings = {});

}  // namespace lethe::audit
