// What a client is told that the others are not: each lie, and that it is refused.
#include "runtime/audit/lies.hpp"

#include "tests/unit/audit_stands.hpp"

namespace lethe::audit {
namespace {

TEST(AuditLies, EachIsRefusedForWhatItIs) {
  struct {
    const char *lie, *said;
  } expected[] = {
      {"a split roster", "is not the one"},
      {"a split log, signed", "log: fork: two heads"},
      {"a split log that grew", "log: fork"},
      {"a rewound log", "log: shrank"},
      {"a stale head", "log: stale"},
      {"a stale roster: the epoch before", "the log's is 2"},
      {"a stale roster under a fresh head", "is over since"},
      {"inflated capacity", "says capacity 300; the policy says 100"},
      {"a leaf that its identity did not sign", "a leaf's signature"},
      {"a node with a third", "one node has more than 300"},
      {"capacity that doubles", "capacity grew"},
      {"fewer nodes", "4 nodes; the policy wants 5"},
      {"a policy with two candidates", "k is 2"},
      {"a policy with more redraws", "r is 9"},
      {"gateway keys for one client", "not the logged ones"},
      {"a full node by hearsay", "shows no word of that node"},
      {"a full node by another", "signature is not the node's"},
      {"the request moved", "answers 400"},
      {"an answer of a node", "opens for none of the 1 nodes"},
  };
  const auto all = tell_lies();
  ASSERT_TRUE(all) << all.why().text;
  ASSERT_EQ(all->size(), std::size(expected));
  for (size_t i = 0; i < all->size(); ++i) {
    const told_lie& told = (*all)[i];
    EXPECT_TRUE(told.refused) << told.lie << ": " << told.said;
    EXPECT_TRUE(told.lie.starts_with(expected[i].lie)) << told.lie;
    EXPECT_NE(told.said.find(expected[i].said), std::string::npos) << told.lie << ": " << told.said;
  }
}

TEST(AuditLies, TheFindingStandsWithItsControls) { EXPECT_TRUE(stands(measure_lies())); }

}  // namespace
}  // namespace lethe::audit
