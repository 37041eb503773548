#pragma once

#include "runtime/client/cluster_view.hpp"
#include "runtime/client/wallet.hpp"

namespace lethe {

/// Buys one batch, of the size that everybody buys, from the issuer itself: it knows the account,
/// and no relay stands between. What it signs is verified under the key that the log has, and in
/// the wallet when this returns: how many tokens.
call_result<size_t> buy_batch(http_client& client, const trust_file& trust,
                              const cluster_state& state, wallet& into, uint64_t now_s);

}  // namespace lethe
