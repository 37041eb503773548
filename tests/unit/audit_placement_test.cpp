// Where the requests of real clients land: small runs of what an audit measures, with its controls.
#include "runtime/audit/placement.hpp"

#include <cmath>

#include "runtime/audit/steering.hpp"
#include "tests/unit/audit_stands.hpp"

namespace lethe::audit {
namespace {

const std::vector<double> four(4, 0.25);

placement opened_by(const std::function<std::vector<uint32_t>(uint32_t)>& nodes, uint32_t users = 2,
                    uint32_t requests = 400) {
  return made_up(four, users, requests, nodes);
}

TEST(AuditPlacement, OfRealClientsIsByCapacityAlikeAndNoMoreThanItsDraws) {
  // 99 % of [-0.2, 0.2] is 4.9 standard deviations off for 600 requests of a user.
  const auto lines = measure_placement({.talks = 150, .turns = 4, .equal_within = 0.2});
  ASSERT_EQ(lines.size(), 3u);
  for (const auto& f : lines) EXPECT_TRUE(stands(f));
}

TEST(AuditPlacement, FollowsUnequalCapacities) {
  const auto p = place_requests(
      {.capacities = {50, 100, 250}, .users = 1, .talks = 300, .turns = 1, .full = 0});
  ASSERT_TRUE(p) << p.why().text;
  EXPECT_EQ(p->answered, 300u);
  EXPECT_EQ(p->failed, 0u) << p->first_failure;
  EXPECT_EQ(p->openings.size(), 300u);
  EXPECT_EQ(p->shares, (std::vector<double>{0.125, 0.25, 0.625}));
  EXPECT_TRUE(fit_of(*p).good()) << text_of(fit_of(*p));
}

TEST(AuditPlacement, CountsWhoOpenedNotWhoAnswered) {
  const auto p = place_requests(
      {.users = 1, .talks = 50, .turns = 2, .candidates = 2, .all_open = true, .full = 0});
  ASSERT_TRUE(p) << p.why().text;
  EXPECT_EQ(p->answered, 100u) << p->first_failure;
  EXPECT_EQ(p->openings.size(), 200u);
  EXPECT_EQ(std::ranges::count(p->openings, true, &opening::answered), 100);
}

TEST(AuditPlacement, EqualityIsBrokenByASteeredUser) {
  uint32_t i = 0;
  auto in_turn = [&](uint32_t) { return std::vector{i++ % 4}; };
  auto steered = [&](uint32_t user) {
    const uint32_t at = i++;
    return std::vector{user == 0 && at % 3 == 0 ? 0 : at % 4};
  };
  EXPECT_TRUE(equality_of(opened_by(in_turn)).good(0.2));
  EXPECT_FALSE(equality_of(opened_by(in_turn)).good(0.02));  // alike, but too few to say so
  const auto e = equality_of(opened_by(steered));
  EXPECT_FALSE(e.good(0.2));
  EXPECT_LT(e.homogeneous.p, alpha);
}

TEST(AuditPlacement, ExposureIsOfSpansOfAUsersOwnRequests) {
  uint32_t i = 0;
  auto p = opened_by([&](uint32_t) { return std::vector{i++ % 4}; }, 2, 40);
  const auto one = exposed_in(p, 1);
  EXPECT_EQ(one.seen.hits, 20u);
  EXPECT_EQ(one.seen.of, 80u);
  EXPECT_EQ(one.due, 0.25);
  const auto four_in_a_row = exposed_in(p, 4);  // each node sees one of every four
  EXPECT_EQ(four_in_a_row.seen.share(), 1);
  EXPECT_NEAR(four_in_a_row.due, 1 - std::pow(0.75, 4), 1e-15);
  EXPECT_EQ(exposed_in(p, 7).seen.of, 10u);  // the rest is no span
  EXPECT_EQ(exposed_in(p, 100).seen.of, 0u);
  EXPECT_NEAR(exposed_in(p, 1, 2).due, 1 - std::pow(0.75, 2), 1e-15);
  // A node that opens what another answers counts.
  for (auto o : std::vector(p.openings)) p.openings.push_back({o.user, o.talk, o.turn, 3, false});
  EXPECT_EQ(exposed_in(p, 1).node, 3u);
  EXPECT_EQ(exposed_in(p, 1).seen.share(), 1);
}

TEST(AuditSteering, StaysBelowItsBoundWhateverTheSchedulerDoes) {
  EXPECT_TRUE(stands(measure_steering({.bodies = 200, .bodies_each = 40})));
}

TEST(AuditSteering, AnHonestSchedulerGetsNoMoreThanItsShare) {
  const auto got = steer(treatment::forwarded, 200, {});
  ASSERT_TRUE(got) << got.why().text;
  EXPECT_EQ(got->opened.hits + got->other_openings, 200u);
  EXPECT_GE(binomial_two_sided(got->opened.hits, 200, 0.25), alpha);
}

TEST(AuditSteering, AClientThatForgetsItsDrawsIsHad) {
  const auto got = steer(treatment::full_by_its_word, 100, {}, true);
  ASSERT_TRUE(got) << got.why().text;
  EXPECT_LT(binomial_at_least(got->opened.hits, 100, 1 - std::pow(0.75, 3)), alpha);
}

TEST(AuditSteering, TwoCandidatesKeepTheirBound) {
  pair_placement_settings s;
  s.placed.talks = 100;
  s.steered.bodies = 60;
  EXPECT_TRUE(stands(measure_two_candidates(s)));
}

}  // namespace
}  // namespace lethe::audit
