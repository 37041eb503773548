#include "runtime/log/roster_policy.hpp"

#include <algorithm>

namespace lethe {

namespace {

result<void> check_node(const roster_leaf& leaf, const log_policy& policy) {
  auto known = policy.classes.find(leaf.model_class);
  if (known == policy.classes.end())
    return fail("roster: class {} is not in the policy", leaf.model_class);
  if (leaf.capacity != known->second)
    return fail("roster: a node of class {} says capacity {}; the policy says {}", leaf.model_class,
                leaf.capacity, known->second);
  if (std::ranges::find(policy.evidence_kinds, leaf.evidence_kind) == policy.evidence_kinds.end())
    return fail("roster: evidence {} is not accepted by the policy", leaf.evidence_kind);
  return {};
}

result<void> check_shares(const roster& r, const log_policy& policy) {
  const uint64_t total = r.capacity();
  auto above = [&](uint64_t part) { return part * 1000 > total * policy.share_max_permille; };
  std::map<hash32, uint64_t> identities;
  for (const roster_leaf& leaf : r.leaves) {
    const uint64_t part = identities[leaf.identity] += leaf.capacity;
    const char* who = above(leaf.capacity) ? "node" : above(part) ? "identity" : nullptr;
    if (who)
      return fail("roster: one {} has more than {} per mille of the capacity", who,
                  policy.share_max_permille);
  }
  return {};
}

result<void> check_growth(const roster& r, const log_policy& policy, const roster_before& before) {
  if (r.epoch < before.epoch)
    return fail("roster: epoch {} comes before {}, which was seen", r.epoch, before.epoch);
  const uint64_t total = r.capacity(), epochs = r.epoch - before.epoch;
  const auto allowed = static_cast<unsigned __int128>(before.capacity) *
                       (1000 + static_cast<unsigned __int128>(policy.growth_max_permille) * epochs);
  if (static_cast<unsigned __int128>(total) * 1000 > allowed)
    return fail("roster: capacity grew from {} to {} in {} epochs; {} per mille each are allowed",
                before.capacity, total, epochs, policy.growth_max_permille);
  return {};
}

}  // namespace

result<void> check_roster(const roster& r, const log_policy& policy,
                          const std::optional<roster_before>& before) {
  if (r.leaves.size() < policy.nodes_min)
    return fail("roster: {} nodes; the policy wants {}", r.leaves.size(), policy.nodes_min);
  for (const roster_leaf& leaf : r.leaves)
    if (auto ok = check_node(leaf, policy); !ok) return ok;
  if (auto ok = check_shares(r, policy); !ok) return ok;
  return before ? check_growth(r, policy, *before) : result<void>();
}

}  // namespace lethe
