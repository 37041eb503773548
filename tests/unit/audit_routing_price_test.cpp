// The simulation of routers, against what is known exactly and against itself.
#include "runtime/audit/routing_price.hpp"

#include "tests/unit/audit_stands.hpp"

namespace lethe::audit {
namespace {

const routing_settings small{.nodes = 400, .requests = 40'000, .loads = {0.5, 0.8, 0.95}};

routing_point at(routing by, double load, const routing_settings& s = small) {
  return simulate_routing(by, load, s);
}

TEST(AuditRoutingPrice, KnowsErlangsFormula) {
  EXPECT_NEAR(turned_away_exactly(0.5, 1, 0), 1.0 / 3, 1e-15);
  EXPECT_NEAR(turned_away_exactly(0.5, 2, 0), 0.2, 1e-15);
  EXPECT_NEAR(turned_away_exactly(0.5, 1, 1), 1.0 / 7, 1e-15);
  EXPECT_NEAR(turned_away_exactly(1, 1, 3), 0.2, 1e-15);
}

TEST(AuditRoutingPrice, OneDrawWithoutASecondIsAQueueOfItsOwn) {
  routing_settings once = small;
  once.redraws = 0;
  once.slots = 2;
  once.waits = 2;
  once.requests = 400'000;
  for (double load : {0.5, 0.9}) {
    const auto p = at(routing::drawn_1, load, once);
    const double exact = turned_away_exactly(load, 2, 2);
    EXPECT_NEAR(p.turned_away, exact, 0.05 * exact) << load;
    EXPECT_NEAR(p.busy, load * (1 - exact), 0.02) << load;
  }
}

TEST(AuditRoutingPrice, WithoutAWaitARequestTakesItsServiceTime) {
  routing_settings bare = small;
  bare.waits = 0;
  for (routing r : {routing::drawn_1, routing::drawn_3, routing::shortest}) {
    const auto p = at(r, 0.5, bare);
    EXPECT_EQ(p.wait_p99, 0) << name_of(r);
    EXPECT_NEAR(p.p50, 0.693, 0.03) << name_of(r);
    EXPECT_NEAR(p.p99, 4.605, 0.3) << name_of(r);
  }
}

TEST(AuditRoutingPrice, WhoSeesEveryQueueWaitsLess) {
  const auto drawn = at(routing::drawn_1, 0.95), shortest = at(routing::shortest, 0.95);
  EXPECT_GT(drawn.wait_p99, 1);
  EXPECT_EQ(shortest.wait_p99, 0);
  EXPECT_LT(shortest.p99, drawn.p99);
  EXPECT_LT(at(routing::drawn_1, 0.5).wait_p99, drawn.wait_p99);
}

TEST(AuditRoutingPrice, MoreCandidatesAreTurnedAwayLess) {
  routing_settings bare = small;
  bare.waits = 0;
  bare.redraws = 0;
  const double one = at(routing::drawn_1, 0.8, bare).turned_away;
  const double two = at(routing::drawn_2, 0.8, bare).turned_away;
  EXPECT_GT(one, 1.2 * two);
  EXPECT_GT(two, 1.2 * at(routing::drawn_3, 0.8, bare).turned_away);
  bare.redraws = 1;  // a second draw of one is as good as a second candidate
  EXPECT_NEAR(at(routing::drawn_1, 0.8, bare).turned_away, two, 0.1 * two);
}

TEST(AuditRoutingPrice, ACacheSavesWork) {
  const auto p = at(routing::affinity, 0.8);
  EXPECT_GT(p.from_cache, 0.5);
  EXPECT_LE(p.from_cache, small.later_turns);
  EXPECT_NEAR(p.busy, 0.8 * (1 - small.saved * p.from_cache), 0.02);
  EXPECT_EQ(at(routing::shortest, 0.8).from_cache, 0);
}

TEST(AuditRoutingPrice, TellsThePrice) {
  uint32_t told = 0;
  routing_settings s = small;
  s.tell = [&](double share) { told += share > 0 && share <= 1; };
  const auto f = measure_routing_price(s);
  EXPECT_TRUE(stands(f));
  EXPECT_EQ(told, 15u);
  ASSERT_EQ(f.plots.size(), 5u);
  EXPECT_EQ(f.plots[0].curves.size(), routings.size());
  EXPECT_EQ(f.plots[4].curves.size(), 3u);
  EXPECT_NE(f.measured.find("client draws 1 serves well up to load"), f.measured.npos);
}

}  // namespace
}  // namespace lethe::audit
