#include <gtest/gtest.h>

#include "runtime/cluster/cluster_plan.hpp"

namespace lethe {
namespace {

constexpr scaling_rules rules{.least = 1,
                              .most = 3,
                              .queued = 8,
                              .queued_low = 2,
                              .pages = 80,
                              .pages_low = 40,
                              .hold_ms = 1000,
                              .idle_ms = 5000};

cluster_load load(uint16_t engines, uint64_t queued, uint64_t reserved_percent = 0) {
  return {.engines = engines, .queued = queued, .pages = 100, .reserved = reserved_percent};
}

/// The same at every look, from `from` to `to`, ten times a second.
uint16_t last(load_scaling& s, const cluster_load& of, uint16_t wanted, fleet_time from,
              fleet_time to) {
  for (fleet_time now = from; now <= to; now += 100) {
    uint16_t next = s.look(of, wanted, now);
    if (next != wanted) return next;
  }
  return wanted;
}

/// What a load that lasts for ever comes to with `engines`.
uint16_t after(const cluster_load& of) {
  load_scaling s(rules);
  return last(s, of, of.engines, 0, 60'000);
}

TEST(Scaling, OneMoreAtItsThresholdAndNotBelow) {
  EXPECT_EQ(after(load(1, 7)), 1);
  EXPECT_EQ(after(load(1, 8)), 2);
  EXPECT_EQ(after(load(1, 9)), 2);
  EXPECT_EQ(after(load(2, 15)), 2);
  EXPECT_EQ(after(load(2, 16)), 3);
  EXPECT_EQ(after(load(1, 0, 79)), 1);
  EXPECT_EQ(after(load(1, 0, 80)), 2);
}

TEST(Scaling, OneFewerAtItsThresholdAndNotAbove) {
  EXPECT_EQ(after(load(2, 3)), 2);
  EXPECT_EQ(after(load(2, 2)), 1);
  EXPECT_EQ(after(load(3, 4)), 2);
  EXPECT_EQ(after(load(2, 0, 21)), 2);  // 42 % of what one has
  EXPECT_EQ(after(load(2, 0, 20)), 1);
  EXPECT_EQ(after(load(2, 3, 0)), 2);  // both must be low
}

TEST(Scaling, StaysBetweenItsBounds) {
  EXPECT_EQ(after(load(3, 1000, 100)), 3);
  EXPECT_EQ(after(load(1, 0)), 1);
  load_scaling s(rules);
  EXPECT_EQ(s.look(load(7, 0), 7, 0), 3);  // the bounds have changed
  EXPECT_EQ(s.look(load(3, 0), 0, 0), 1);
}

TEST(Scaling, ALoadMustLast) {
  load_scaling up(rules);
  EXPECT_EQ(last(up, load(1, 8), 1, 0, 900), 1);
  EXPECT_EQ(up.look(load(1, 8), 1, 999), 1);
  EXPECT_EQ(up.look(load(1, 8), 1, 1000), 2);
  load_scaling down(rules);
  EXPECT_EQ(last(down, load(2, 0), 2, 0, 4900), 2);
  EXPECT_EQ(down.look(load(2, 0), 2, 4999), 2);
  EXPECT_EQ(down.look(load(2, 0), 2, 5000), 1);
}

TEST(Scaling, ALoadThatComesAndGoesChangesNothing) {
  load_scaling s(rules);
  for (fleet_time now = 0; now < 600'000; now += 100) {
    bool high = now / 900 % 2 == 0;  // shorter than hold_ms
    ASSERT_EQ(s.look(load(2, high ? 100 : 0), 2, now), 2) << now;
  }
}

TEST(Scaling, BetweenTheThresholdsNothingChanges) {
  load_scaling s(rules);
  for (fleet_time now = 0; now < 600'000; now += 100)
    ASSERT_EQ(s.look(load(2, now % 200 ? 5 : 15, 50), 2, now), 2) << now;
}

/// A load that one engine cannot bear and two can is not sent back and forth.
TEST(Scaling, WhatWentUpForALoadDoesNotComeDownUnderIt) {
  for (uint64_t waiting = 0; waiting <= 24; ++waiting)
    for (uint64_t percent = 0; percent <= 100; percent += 20) {
      load_scaling s(rules);
      uint16_t wanted = 1;
      int changes = 0;
      for (fleet_time now = 0; now < 120'000; now += 200) {
        // Pages: what is reserved in all, over what the engines have.
        cluster_load seen{.engines = wanted,
                          .queued = waiting,
                          .pages = 100u * wanted,
                          .reserved = std::min<uint64_t>(percent, 100u * wanted)};
        uint16_t next = s.look(seen, wanted, now);
        changes += next != wanted;
        wanted = next;
      }
      EXPECT_LE(changes, 2) << waiting << " waiting, " << percent << " % of one engine's pages";
    }
}

TEST(Scaling, AfterAChangeTheClocksBeginAnew) {
  load_scaling s(rules);
  ASSERT_EQ(last(s, load(1, 100), 1, 0, 1000), 2);
  EXPECT_EQ(s.look(load(2, 100), 2, 1100), 2);
  EXPECT_EQ(s.look(load(2, 100), 2, 2099), 2);
  EXPECT_EQ(s.look(load(2, 100), 2, 2100), 3);
}

TEST(Scaling, WhileEnginesComeTheLoadIsNotJudged) {
  load_scaling s(rules);
  EXPECT_EQ(last(s, load(1, 100), 2, 0, 60'000), 2);
  EXPECT_EQ(s.now_text(), "1 of 2 engines are ready");
  EXPECT_EQ(s.look({}, 2, 60'000), 2);
  EXPECT_EQ(s.look(load(2, 100), 2, 60'100), 2);  // and what was before does not count
  EXPECT_EQ(s.look(load(2, 100), 2, 61'100), 3);
}

TEST(Scaling, EnginesThatLeaveCountAmongTheMost) {
  auto with = [](uint16_t leaving, uint64_t queued) {
    auto l = load(2, queued);
    l.leaving = leaving;
    return after(l);
  };
  EXPECT_EQ(with(0, 100), 3);
  EXPECT_EQ(with(1, 100), 2);
  EXPECT_EQ(with(1, 0), 2);  // nor does a second one leave before the first has
  EXPECT_EQ(with(0, 0), 1);
}

TEST(Scaling, SaysWhatItSeesAndWhatItDid) {
  load_scaling s(rules);
  EXPECT_EQ(s.changed_text(0), "");
  (void)s.look(load(1, 12, 50), 1, 0);
  EXPECT_EQ(s.now_text(),
            "one more in 1000 ms; 12.0 requests wait per engine, 50 % of pages are reserved");
  (void)s.look(load(1, 12, 50), 1, 1000);
  EXPECT_EQ(s.changed_text(8999),
            "7 s ago 1 -> 2: 12.0 requests wait per engine, 50 % of pages are reserved");
  (void)s.look(load(3, 100), 3, 9000);
  EXPECT_TRUE(s.now_text().starts_with("more is asked than scaling.most allows")) << s.now_text();
  (void)s.look(load(3, 0), 3, 9100);
  EXPECT_TRUE(s.now_text().starts_with("one fewer in 5000 ms")) << s.now_text();
}

TEST(Scaling, OtherRulesBeginAnew) {
  load_scaling s(rules);
  EXPECT_EQ(last(s, load(1, 8), 1, 0, 900), 1);
  s.change(rules);
  EXPECT_EQ(s.look(load(1, 8), 1, 1000), 1);
  EXPECT_EQ(s.look(load(1, 8), 1, 2000), 2);
}

// --- the cluster's plan ------------------------------------------------------------------------

cluster_plan plan_of(const std::string& more) {
  auto config = cluster_config::parse("[model]\npath=\"/m\"\n" + more, "c.toml");
  for (const auto& p : config.problems()) ADD_FAILURE() << p;
  auto plan = cluster_plan::make(config.get(), {.cores = 8, .memory = uint64_t{1} << 34});
  EXPECT_TRUE(plan) << (plan ? "" : plan.why().text);
  return *std::move(plan);
}
result<void> apply_file(cluster_plan& plan, const std::string& more) {
  auto config = cluster_config::parse("[model]\npath=\"/m\"\n" + more, "c.toml");
  return plan.apply(config.get());
}
const std::string by_load = "[scaling]\nleast=2\nmost=4\n";

TEST(ScalingPlan, BeginsWithTheFilesNumberWithinItsBounds) {
  EXPECT_EQ(plan_of(by_load).engines(), 2);
  EXPECT_EQ(plan_of(by_load + "[engines]\ncount=3\n").engines(), 3);
  EXPECT_EQ(plan_of(by_load + "[engines]\ncount=9\n").engines(), 4);
  auto floor = plan_of("[scaling]\nmost=4\n[engines]\ncount=3\n");
  EXPECT_EQ(floor.engines(), 3);
  EXPECT_EQ(floor.scaling().least, 3);
}

TEST(ScalingPlan, TheLoadMovesThePlacesAndNotTheFile) {
  auto plan = plan_of(by_load);
  plan.scale_by_load(4);
  EXPECT_EQ(plan.places().size(), 4u);
  EXPECT_EQ(plan.config().getEngines().getCount(), 1);
  plan.scale_by_load(9);
  EXPECT_EQ(plan.places().size(), 4u);
  plan.scale_by_load(1);
  EXPECT_EQ(plan.places().size(), 2u);
}

TEST(ScalingPlan, ANumberByHandIsRefusedAndSaysWhatToDo) {
  auto plan = plan_of(by_load);
  auto said = plan.scale(3);
  ASSERT_FALSE(said);
  EXPECT_NE(said.why().text.find("between 2 and 4"), std::string::npos) << said.why().text;
  EXPECT_NE(said.why().text.find("lethe apply"), std::string::npos) << said.why().text;
  EXPECT_EQ(plan.engines(), 2);
}

TEST(ScalingPlan, AFileThatIsAppliedKeepsWhatTheLoadAskedForWithinItsBounds) {
  auto plan = plan_of(by_load);
  plan.scale_by_load(4);
  ASSERT_TRUE(apply_file(plan, by_load + "hold_ms=500\n"));
  EXPECT_EQ(plan.engines(), 4);
  ASSERT_TRUE(apply_file(plan, "[scaling]\nleast=1\nmost=3\n"));
  EXPECT_EQ(plan.engines(), 3);
  ASSERT_TRUE(apply_file(plan, "[engines]\ncount=2\n"));  // by hand from here on
  EXPECT_EQ(plan.engines(), 2);
  EXPECT_TRUE(plan.scale(5));
  ASSERT_TRUE(apply_file(plan, "[scaling]\nmost=8\n[engines]\ncount=5\n"));
  EXPECT_EQ(plan.engines(), 5);
}

TEST(ScalingPlan, ADrainedPlaceStaysEmptyUntilTheLoadAsks) {
  auto plan = plan_of(by_load);
  plan.scale_by_load(4);
  auto places = plan.places();
  places.pop_back();
  plan.keep_only(places);
  EXPECT_EQ(plan.engines(), 3);
  EXPECT_EQ(plan.places().size(), 3u);
  plan.scale_by_load(4);
  EXPECT_EQ(plan.places().size(), 4u);
}

}  // namespace
}  // namespace lethe
