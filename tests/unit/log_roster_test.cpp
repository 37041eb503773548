#include "runtime/log/roster.hpp"

#include "runtime/log/log_limits.hpp"
#include "runtime/log/roster_policy.hpp"
#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;

log_entry logged(const roster& r) { return r.summary(t0).to_entry(r.epoch); }

TEST(Roster, IsReadAsItIsWritten) {
  const roster r = three_nodes();
  auto read = verify_roster(r.to_bytes(), logged(r));
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(*read, r);
  EXPECT_EQ(read->capacity(), 350u);
  EXPECT_EQ(read->find(r.leaves[1].node.id), &read->leaves[1]);
  EXPECT_EQ(read->find({}), nullptr);
}

TEST(Roster, ALeafHasTheFieldsOfTheSpecification) {
  roster_leaf l = leaf(0, 100, 0);
  l.evidence_kind = "tpm2";
  l.evidence_digest = random_bytes(32, 3);
  l.sign(identity(0));
  const bytes b = l.to_bytes();
  const std::vector<size_t> sizes = {6, 32, 32, 32, 14, 4, 4, 32, 8, 8, 64};
  size_t at = 0;
  for (size_t size : sizes) {
    ASSERT_LE(at + 2, b.size());
    EXPECT_EQ(size_t(uint8_t(b[at])) << 8 | uint8_t(b[at + 1]), size);
    at += 2 + size;
  }
  EXPECT_EQ(at, b.size());
  EXPECT_TRUE(
      verify_signature(l.identity, bytes_view(b).first(b.size() - 66), bytes_view(b).last(64)));
}

TEST(Roster, EveryByteIsBoundByTheLog) {
  const roster r = three_nodes();
  const bytes whole = r.to_bytes();
  for (size_t at = 0; at < whole.size(); ++at) {
    EXPECT_FALSE(verify_roster(flipped(whole, at), logged(r))) << at;
    EXPECT_FALSE(verify_roster(bytes_view(whole).first(at), logged(r))) << at;
  }
  EXPECT_FALSE(verify_roster(joined({whole, bytes(1)}), logged(r)));
  const log_entry entry = logged(r);
  for (size_t at = 0; at < entry.payload.size(); ++at) {
    log_entry other = entry;
    other.payload[at] ^= std::byte{0x80};
    if (at != 7) {  // a not-before of two minutes more is as good
      EXPECT_FALSE(verify_roster(whole, other)) << at;
    }
    other.payload.resize(at);
    EXPECT_FALSE(verify_roster(whole, other)) << at;
  }
  log_entry next = entry;
  ++next.epoch;
  EXPECT_TRUE(refused(verify_roster(whole, next), "roster: of epoch 7"));
  next = entry;
  next.kind = log_kind::policy;
  EXPECT_FALSE(verify_roster(whole, next));
}

/// A directory that logs what it altered still lacks the identities' signatures.
TEST(Roster, EveryFieldIsBoundByTheIdentity) {
  const roster good = three_nodes();
  using change = void (*)(roster_leaf&);
  const change changes[] = {
      [](roster_leaf& l) { l.node.suite.aead = 3; },
      [](roster_leaf& l) { l.node.pk[0] ^= std::byte{1}; },
      [](roster_leaf& l) { l.node.sigpk[0] ^= std::byte{1}; },
      [](roster_leaf& l) { l.identity = identity(9).public_key(); },
      [](roster_leaf& l) { l.model_class = "ember/gpu"; },
      [](roster_leaf& l) { ++l.capacity; },
      [](roster_leaf& l) { l.evidence_kind = "tpm2", l.evidence_digest = bytes(32); },
      [](roster_leaf& l) { ++l.not_before; },
      [](roster_leaf& l) { ++l.not_after; },
      [](roster_leaf& l) { l.identity_signature[0] ^= std::byte{1}; },
  };
  for (const change altered : changes) {
    roster r = good;
    roster_leaf& l = r.leaves[1];
    altered(l);
    l.node.id = node_key_id(l.node.suite, l.node.pk, l.node.sigpk);
    r.sort();
    EXPECT_TRUE(refused(verify_roster(r.to_bytes(), logged(r)),
                        "roster: a leaf's signature is not its identity's"));
    for (roster_leaf& again : r.leaves)
      for (uint32_t who : {0, 1, 2, 9})
        if (identity(who).public_key() == again.identity) again.sign(identity(who));
    EXPECT_TRUE(verify_roster(r.to_bytes(), logged(r)));  // so nothing else was wrong
  }
}

TEST(Roster, NoKeyIsThereTwice) {
  auto of = [](std::vector<roster_leaf> leaves) {
    roster r{.epoch = 7, .leaves = std::move(leaves)};
    r.sort();
    return verify_roster(r.to_bytes(), logged(r));
  };
  EXPECT_TRUE(of({leaf(0, 1, 0), leaf(1, 1, 0)}));  // one identity may run two
  EXPECT_TRUE(refused(of({leaf(0, 1, 0), leaf(0, 1, 1)}), "roster: nodes are not in the order"));
  auto with = [](roster_leaf l, auto&& change) {
    change(l.node);
    l.node.id = node_key_id(l.node.suite, l.node.pk, l.node.sigpk);
    l.sign(identity(1));
    return l;
  };
  const roster_leaf first = leaf(0, 1, 0);
  auto same_pk = with(leaf(1, 1, 1), [&](node_public& n) { n.pk = first.node.pk; });
  auto same_sigpk = with(leaf(1, 1, 1), [&](node_public& n) { n.sigpk = first.node.sigpk; });
  EXPECT_TRUE(refused(of({first, same_pk}), "roster: two nodes have one key"));
  EXPECT_TRUE(refused(of({first, same_sigpk}), "roster: two nodes have one key"));
  roster unsorted = three_nodes();
  std::swap(unsorted.leaves[0], unsorted.leaves[1]);
  EXPECT_TRUE(
      refused(verify_roster(unsorted.to_bytes(), logged(unsorted)), "roster: nodes are not"));
}

TEST(Roster, NodesMustBeValidWhenTheEpochBegins) {
  auto at = [](uint64_t not_before) {
    roster r{.epoch = 7, .leaves = {leaf(0, 1, 0)}};  // valid from t0 - 60 to t0 + 1800
    return verify_roster(r.to_bytes(), r.summary(not_before).to_entry(7));
  };
  EXPECT_TRUE(at(t0 - 60));
  EXPECT_TRUE(at(t0 + 1799));
  EXPECT_TRUE(refused(at(t0 - 61), "roster: a node is not valid"));
  EXPECT_TRUE(refused(at(t0 + 1800), "roster: a node is not valid"));
}

TEST(Roster, LeavesHaveBounds) {
  auto good = [](auto&& change) {
    roster_leaf l = leaf(0, 1, 0);
    change(l);
    return bool(roster_leaf::from_bytes(l.to_bytes()));
  };
  using l = roster_leaf;
  EXPECT_TRUE(good([](l& x) { x.model_class = std::string(limits::roster_word_bytes_max, 'a'); }));
  EXPECT_FALSE(
      good([](l& x) { x.model_class = std::string(limits::roster_word_bytes_max + 1, 'a'); }));
  for (const char* word : {"", "A", "a b", "a\n", "\xc3\xa4"}) {
    EXPECT_FALSE(good([&](l& x) { x.model_class = word; }));
    EXPECT_FALSE(good([&](l& x) { x.evidence_kind = word, x.evidence_digest = bytes(1); }));
  }
  auto digest = [&](size_t size) {
    return good([&](l& x) { x.evidence_kind = "tpm2", x.evidence_digest = bytes(size); });
  };
  EXPECT_TRUE(digest(limits::roster_digest_bytes_max));
  EXPECT_FALSE(digest(limits::roster_digest_bytes_max + 1));
  EXPECT_FALSE(digest(0));
  EXPECT_FALSE(good([](l& x) { x.evidence_digest = bytes(1); }));  // of no evidence
  EXPECT_FALSE(good([](l& x) { x.capacity = 0; }));
  EXPECT_FALSE(good([](l& x) { x.not_after = x.not_before; }));
  EXPECT_FALSE(good([](l& x) { x.node.suite.kem = 0x30; }));
  EXPECT_FALSE(good([](l& x) { x.node.pk.pop_back(); }));
}

TEST(Roster, HasABoundOfNodes) {
  auto of = [](uint32_t nodes) {
    roster r{.epoch = 1};
    for (uint32_t n = 0; n < nodes; ++n) {
      roster_leaf l;
      l.node.pk = bytes(32);
      std::memcpy(l.node.pk.data(), &n, 4);
      std::memcpy(l.node.sigpk.data(), &n, 4);
      l.node.id = node_key_id(l.node.suite, l.node.pk, l.node.sigpk);
      l.model_class = "c", l.capacity = 1, l.not_after = 1;
      r.leaves.push_back(l);
    }
    r.sort();
    return bool(roster::from_bytes(r.to_bytes()));
  };
  EXPECT_TRUE(of(limits::roster_nodes_max));
  EXPECT_FALSE(of(limits::roster_nodes_max + 1));
  EXPECT_TRUE(of(0));
}

// What a policy makes of a roster.

roster of_nodes(std::vector<std::pair<uint32_t, uint32_t>> class_and_identity, uint32_t epoch = 7) {
  roster r{.epoch = epoch};
  uint32_t n = 0;
  for (auto [big, who] : class_and_identity) {
    roster_leaf l = leaf(n++, big ? 4000 : 100, who);
    if (big) l.model_class = "ember/gpu";
    l.sign(identity(who));
    r.leaves.push_back(l);
  }
  r.sort();
  return r;
}

TEST(RosterPolicy, AcceptsWhatItPromises) {
  auto ok = check_roster(of_nodes({{0, 0}, {0, 1}}), sample_policy());
  EXPECT_TRUE(ok) << ok.why().text;
}

TEST(RosterPolicy, RefusesTooFewNodes) {
  log_policy p = sample_policy();
  p.nodes_min = 3;
  EXPECT_TRUE(refused(check_roster(of_nodes({{0, 0}, {0, 1}}), p), "roster: 2 nodes"));
  EXPECT_TRUE(check_roster(of_nodes({{0, 0}, {0, 1}, {0, 2}}), p));
  p.nodes_min = 1;
  EXPECT_FALSE(check_roster(of_nodes({}), p));
}

TEST(RosterPolicy, RefusesAShareThatIsTooLarge) {
  const log_policy p = sample_policy();  // at most 600 per mille
  EXPECT_TRUE(refused(check_roster(of_nodes({{0, 0}}), p), "roster: one node has"));
  EXPECT_TRUE(refused(check_roster(of_nodes({{1, 0}, {0, 1}, {0, 2}}), p), "roster: one node has"));
  EXPECT_TRUE(refused(check_roster(of_nodes({{0, 0}, {0, 0}, {0, 1}}), p), "roster: one identity"));
  EXPECT_TRUE(check_roster(of_nodes({{0, 0}, {0, 0}, {0, 0}, {0, 1}, {0, 1}}), p));  // 600 exactly
}

TEST(RosterPolicy, CapacityIsThatOfTheClass) {
  roster r = of_nodes({{0, 0}, {0, 1}});
  r.leaves[0].capacity = 101;
  EXPECT_TRUE(refused(check_roster(r, sample_policy()), "roster: a node of class"));
  r = of_nodes({{0, 0}, {0, 1}});
  r.leaves[0].model_class = "ember/cpu";
  EXPECT_TRUE(refused(check_roster(r, sample_policy()), "roster: class ember/cpu is not"));
}

TEST(RosterPolicy, EvidenceIsOfAcceptedKinds) {
  roster r = of_nodes({{0, 0}, {0, 1}});
  r.leaves[0].evidence_kind = "other";
  EXPECT_TRUE(refused(check_roster(r, sample_policy()), "roster: evidence other"));
  log_policy strict = sample_policy();
  strict.evidence_kinds = {"tpm2"};
  EXPECT_TRUE(refused(check_roster(of_nodes({{0, 0}, {0, 1}}), strict), "roster: evidence none"));
  EXPECT_TRUE(strict.attested());
  EXPECT_FALSE(sample_policy().attested());
}

TEST(RosterPolicy, GrowthHasARate) {
  const log_policy p = sample_policy();  // half as much again each epoch
  const roster r = of_nodes({{0, 0}, {0, 1}, {0, 2}});
  EXPECT_TRUE(check_roster(r, p, roster_before{6, 200}));
  EXPECT_TRUE(refused(check_roster(r, p, roster_before{6, 199}), "roster: capacity grew"));
  EXPECT_TRUE(check_roster(r, p, roster_before{5, 150}));
  EXPECT_FALSE(check_roster(r, p, roster_before{5, 149}));
  EXPECT_TRUE(check_roster(r, p, roster_before{7, 300}));
  EXPECT_FALSE(check_roster(r, p, roster_before{7, 299}));
  EXPECT_TRUE(check_roster(r, p, roster_before{6, UINT64_MAX}));
  EXPECT_TRUE(refused(check_roster(r, p, roster_before{8, 300}), "roster: epoch 7 comes before"));
}

}  // namespace
}  // namespace lethe
