// The client's own draws, and that what measures them would notice.
#include "runtime/audit/draws.hpp"

#include "tests/unit/audit_stands.hpp"

namespace lethe::audit {
namespace {

TEST(AuditDraws, FollowEqualCapacities) {
  const auto f = measure_draws({.beside = 100'000});
  EXPECT_TRUE(stands(f));
  EXPECT_NE(f.measured.find("18914 draws: "), f.measured.npos) << f.measured;
  EXPECT_EQ(f.controls.size(), 4u);
  ASSERT_EQ(f.plots.size(), 1u);
  EXPECT_EQ(f.plots[0].curves[1].points.size(), 4u);
}

TEST(AuditDraws, FollowUnequalCapacities) {
  EXPECT_TRUE(stands(measure_draws({.capacities = {70, 100, 300, 30}, .beside = 0})));
}

TEST(AuditDraws, SayWhenTheyAreTooFew) {
  const auto f = measure_draws({.draws = 500, .beside = 0});
  EXPECT_NE(f.note.find("too few"), f.note.npos);
}

TEST(AuditDraws, OfTwoCandidatesKnowNothingOfEachOther) {
  EXPECT_TRUE(stands(measure_pairs({.pairs = 50'000})));
  EXPECT_TRUE(stands(measure_pairs({.capacities = {1, 2, 5}, .pairs = 50'000})));
}

/// Each of the two tests alone finds what the other may miss.
TEST(AuditDraws, AFitIsBadForOneNodeOrForAll) {
  const std::vector<double> shares(4, 0.25);
  auto fit = [&](std::vector<uint64_t> c) { return fit_of(c, shares); };
  EXPECT_TRUE(fit({5'000, 5'010, 4'980, 5'010}).good());
  EXPECT_FALSE(fit({5'500, 4'834, 4'833, 4'833}).good());
  const auto one = fit({5'300, 4'900, 4'900, 4'900});  // chi-square alone would pass it
  EXPECT_GE(one.all.p, alpha);
  EXPECT_LT(one.node_p, alpha);
  EXPECT_NEAR(one.most, 1.06, 1e-12);
  const auto starved = fit({4'700, 5'100, 5'100, 5'100});  // nobody gets too much
  EXPECT_LT(starved.all.p, 2e-4);
  EXPECT_GE(starved.node_p, alpha);
}

TEST(AuditDraws, SharesAreOfAllCapacity) {
  EXPECT_EQ(shares_of(roster_of(std::vector<uint32_t>{1, 3, 4})),
            (std::vector<double>{0.125, 0.375, 0.5}));
}

TEST(AuditDraws, DistinctNodesAreNeverTheSame) {
  const roster two = roster_of(std::vector<uint32_t>{1, 9});
  for (int i = 0; i < 100; ++i) {
    const auto drawn = distinct_nodes(two);
    EXPECT_NE(drawn[0], drawn[1]);
  }
}

}  // namespace
}  // namespace lethe::audit
