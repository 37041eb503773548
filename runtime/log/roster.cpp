#include "runtime/log/roster.hpp"

#include <algorithm>
#include <set>

#include "runtime/log/be_fields.hpp"
#include "runtime/log/merkle.hpp"
#include "runtime/log/words.hpp"

namespace lethe {

namespace {

constexpr uint8_t version = 1;

result<void> check_leaf(const roster_leaf& leaf) {
  if (auto known = expect_known(leaf.node.suite); !known) return known;
  if (leaf.node.pk.size() != leaf.node.suite.public_bytes())
    return fail("roster: a node's key has {} bytes; one of its suite has {}", leaf.node.pk.size(),
                leaf.node.suite.public_bytes());
  if (!is_word(leaf.model_class)) return fail("roster: a model class is {}", word_form);
  if (!is_word(leaf.evidence_kind)) return fail("roster: a kind of evidence is {}", word_form);
  if (leaf.evidence_digest.size() > limits::roster_digest_bytes_max)
    return fail("roster: a digest of {} bytes; at most {}", leaf.evidence_digest.size(),
                limits::roster_digest_bytes_max);
  if (leaf.evidence_digest.empty() != (leaf.evidence_kind == no_evidence))
    return fail("roster: evidence has a digest, and none has none");
  if (leaf.capacity == 0) return fail("roster: a node without capacity");
  if (leaf.not_before >= leaf.not_after) return fail("roster: a node that is never valid");
  return {};
}

/// Another id than all before it, and no key that one of them has.
class distinct_keys {
 public:
  result<void> add(const node_public& node) {
    if (last_ && !(*last_ < node.id))
      return fail("roster: nodes are not in the order of their ids");
    last_ = node.id;
    if (!sealing_.insert(node.pk).second || !signing_.insert(node.sigpk).second)
      return fail("roster: two nodes have one key");
    return {};
  }

 private:
  std::optional<hash32> last_;
  std::set<std::vector<std::byte>> sealing_;
  std::set<hash32> signing_;
};

}  // namespace

std::vector<std::byte> roster_leaf::unsigned_bytes() const {
  std::vector<std::byte> out;
  append_sized(out, node.suite.bytes());
  append_sized(out, node.pk);
  append_sized(out, node.sigpk);
  append_sized(out, identity);
  append_sized(out, as_bytes(model_class));
  append_sized_be(out, capacity);
  append_sized(out, as_bytes(evidence_kind));
  append_sized(out, evidence_digest);
  append_sized_be(out, not_before);
  append_sized_be(out, not_after);
  return out;
}

std::vector<std::byte> roster_leaf::to_bytes() const {
  auto out = unsigned_bytes();
  append_sized(out, identity_signature);
  return out;
}

result<roster_leaf> roster_leaf::from_bytes(bytes_view bytes) {
  field_reader in(bytes);
  roster_leaf leaf;
  std::array<std::byte, hpke_suite::wire_bytes> suite{};
  in.sized_into(suite);
  leaf.node.suite = hpke_suite::from_bytes(suite);
  bytes_view pk = in.sized();
  leaf.node.pk.assign(pk.begin(), pk.end());
  in.sized_into(leaf.node.sigpk);
  in.sized_into(leaf.identity);
  leaf.model_class = as_text(in.sized());
  leaf.capacity = in.sized_number<uint32_t>();
  leaf.evidence_kind = as_text(in.sized());
  bytes_view digest = in.sized();
  leaf.evidence_digest.assign(digest.begin(), digest.end());
  leaf.not_before = in.sized_number<uint64_t>();
  leaf.not_after = in.sized_number<uint64_t>();
  in.sized_into(leaf.identity_signature);
  if (!in.done()) return fail("roster: a leaf of {} bytes is not one of ours", bytes.size());
  if (auto good = check_leaf(leaf); !good) return good.why();
  leaf.node.id = node_key_id(leaf.node.suite, leaf.node.pk, leaf.node.sigpk);
  return leaf;
}

void roster_leaf::sign(const signing_key& identity_key) {
  identity = identity_key.public_key();
  identity_signature = identity_key.sign(unsigned_bytes());
}

bool roster_leaf::is_signed() const {
  return verify_signature(identity, unsigned_bytes(), identity_signature);
}

void roster::sort() {
  std::ranges::sort(leaves, {}, [](const roster_leaf& leaf) { return leaf.node.id; });
}

uint64_t roster::capacity() const {
  uint64_t sum = 0;
  for (const roster_leaf& leaf : leaves) sum += leaf.capacity;
  return sum;
}

hash32 roster::root() const {
  merkle_frontier tree;
  for (const roster_leaf& leaf : leaves) tree.append(leaf_hash(leaf.to_bytes()));
  return tree.root();
}

roster_summary roster::summary(uint64_t not_before) const {
  return {not_before, root(), uint32_t(leaves.size()), capacity()};
}

const roster_leaf* roster::find(const hash32& node_key_id) const {
  auto at =
      std::ranges::find(leaves, node_key_id, [](const roster_leaf& leaf) { return leaf.node.id; });
  return at == leaves.end() ? nullptr : &*at;
}

std::vector<std::byte> roster::to_bytes() const {
  std::vector<std::byte> out{std::byte(version)};
  append_be(out, epoch);
  append_be(out, uint32_t(leaves.size()));
  for (const roster_leaf& leaf : leaves) append_sized(out, leaf.to_bytes());
  return out;
}

result<roster> roster::from_bytes(bytes_view bytes) {
  field_reader in(bytes);
  if (in.number<uint8_t>() != version) return fail("roster: not of version {}", version);
  roster r{.epoch = in.number<uint32_t>()};
  const auto count = in.number<uint32_t>();
  if (count > limits::roster_nodes_max)
    return fail("roster: {} nodes; at most {}", count, limits::roster_nodes_max);
  distinct_keys keys;
  for (uint32_t i = 0; i < count; ++i) {
    auto leaf = roster_leaf::from_bytes(in.sized());
    if (!leaf) return leaf.why();
    if (auto ok = keys.add(leaf->node); !ok) return ok.why();
    r.leaves.push_back(*std::move(leaf));
  }
  if (!in.done()) return fail("roster: not exactly {} nodes", count);
  return r;
}

result<roster> verify_roster(bytes_view bytes, const log_entry& logged) {
  auto summary = roster_summary::from_entry(logged);
  if (!summary) return summary.why();
  auto r = roster::from_bytes(bytes);
  if (!r) return r;
  if (r->epoch != logged.epoch)
    return fail("roster: of epoch {}; the log's is {}", r->epoch, logged.epoch);
  if (r->summary(summary->not_before) != *summary)
    return fail("roster: epoch {} is not the one that is logged", r->epoch);
  for (const roster_leaf& leaf : r->leaves) {
    if (!leaf.is_signed()) return fail("roster: a leaf's signature is not its identity's");
    if (summary->not_before < leaf.not_before || summary->not_before >= leaf.not_after)
      return fail("roster: a node is not valid when epoch {} begins", r->epoch);
  }
  return r;
}

}  // namespace lethe
