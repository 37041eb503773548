#pragma once

#include <set>

#include "runtime/audit/finding.hpp"
#include "runtime/audit/small_cluster.hpp"

/// What gateway and scheduler see of two users: every byte of it is the same, or fresh randomness.
namespace lethe::audit {

/// A sealed request as the gateway opens it, taken apart.
struct router_view {
  /// Outer head and inner request, byte by byte, with zeros where `fresh` was.
  std::string fixed;
  /// Nonce and signature of the token, the blinded change, node ids, enc, wrapped keys, sealed
  /// chunks: in that order.
  std::string fresh;
};
/// Refuses what no client of ours sends.
result<router_view> view_of(const routed& seen);

/// What tells the requests of two users apart; empty: nothing does. Fixed bytes must be one of the
/// forms that both have; no bit of what is fresh may be set more often for one of them.
std::string difference(std::span<const router_view> a, std::span<const router_view> b);

struct router_settings {
  uint32_t requests = 128;  // of each user, in each bucket
};
/// Two users of different words, lengths, accounts and pasts. Controls: a header for each user, a
/// bit of the token's nonce for each user, bodies that are not padded.
finding measure_router_view(const router_settings& settings = {});

}  // namespace lethe::audit
