#include "runtime/cluster/fleet.hpp"

#include <gtest/gtest.h>

namespace lethe {
namespace {

using schema::Phase;

std::vector<engine_place> places(size_t n) {
  return std::vector<engine_place>(n, {.host = "a", .version = 1});
}

TEST(Fleet, APlaceIsNotGivenToAnEngineThatIsGone) {
  fleet f({});
  f.host_joined("a");
  f.want(places(2), 0);
  ASSERT_EQ(f.due(0).size(), 2u);
  ASSERT_TRUE(f.engine_said(0, 1, Phase::READY, 1));
  f.want(places(1), 2);  // engine 1 has not begun to serve
  ASSERT_EQ(f.due(2), (std::vector<fleet_order>{{fleet_order::what::kill, 1, 1, "a"}}));
  f.want(places(2), 2);  // before anyone looks again
  EXPECT_EQ(f.due(2), (std::vector<fleet_order>{{fleet_order::what::start, 2, 1, "a"}}));
  ASSERT_TRUE(f.engine_said(2, 1, Phase::READY, 3));
  (void)f.due(3);
  EXPECT_TRUE(f.settled());
}

TEST(Fleet, TheEndOfAReplacedEngineIsNotItsSuccessors) {
  fleet f({.restart_ms = 10});
  f.host_joined("a");
  f.want(places(1), 0);
  (void)f.due(0);
  EXPECT_TRUE(f.engine_ended(0, 1, "lost", 1));
  ASSERT_EQ(f.due(20), (std::vector<fleet_order>{{fleet_order::what::start, 0, 2, "a"}}));
  EXPECT_FALSE(f.engine_ended(0, 1, "lost", 21));
  EXPECT_FALSE(f.engine_ended(7, 1, "never was", 21));
  EXPECT_EQ(f.engines().at(0).phase, Phase::STARTING);
}

TEST(Fleet, AHostThatLeavesDrainsItsEnginesAndTheyWaitForIt) {
  fleet f({});
  f.host_joined("a");
  f.want(places(2), 0);
  (void)f.due(0);
  ASSERT_TRUE(f.engine_said(0, 1, Phase::READY, 1));  // engine 1 is not that far
  EXPECT_FALSE(f.is_idle("a"));
  f.host_leaves("a");
  EXPECT_EQ(f.due(2), (std::vector<fleet_order>{{fleet_order::what::drain, 0, 1, "a"},
                                                {fleet_order::what::kill, 1, 1, "a"}}));
  EXPECT_FALSE(f.is_idle("a"));
  ASSERT_TRUE(f.engine_said(0, 1, Phase::GONE, 3));
  EXPECT_EQ(f.due(3), (std::vector<fleet_order>{}));
  EXPECT_TRUE(f.is_idle("a"));
  EXPECT_EQ(f.engines().at(0).phase, Phase::WAITING);
  EXPECT_EQ(f.engines().at(0).reason, "its host left");
  f.host_lost("a", 4);
  EXPECT_EQ(f.due(1000), (std::vector<fleet_order>{}));
  f.host_joined("a");
  EXPECT_EQ(f.due(2000), (std::vector<fleet_order>{{fleet_order::what::start, 0, 2, "a"},
                                                   {fleet_order::what::start, 1, 2, "a"}}));
}

TEST(Fleet, AnEngineThatEndsWithItsHostHasNotFailed) {
  fleet f({.restarts = 1, .together_ms = 100});
  f.host_joined("a");
  f.want(places(1), 0);
  for (uint32_t epoch = 1; epoch < 10; ++epoch) {
    fleet_time at = epoch * 1000;
    ASSERT_EQ(f.due(at), (std::vector<fleet_order>{{fleet_order::what::start, 0, epoch, "a"}}));
    ASSERT_TRUE(f.engine_said(0, epoch, Phase::READY, at));
    ASSERT_TRUE(f.engine_ended(0, epoch, "it does not answer", at + 10));
    f.host_lost("a", at + 110);
    EXPECT_EQ(f.engines().at(0).reason, "its host was lost");
    f.host_joined("a");
  }
  // What ends longer before has.
  (void)f.due(20'000);
  ASSERT_TRUE(f.engine_ended(0, 10, "it broke", 20'010));
  f.host_lost("a", 20'111);
  EXPECT_EQ(f.engines().at(0).reason, "it broke");
}

TEST(Fleet, AHostThatNobodyWantsKeepsItsEngineUntilTheOthersServe) {
  fleet f({});
  f.host_joined("a");
  f.host_joined("b");
  f.want({{"a", 1}, {"b", 1}}, 0);
  (void)f.due(0);
  ASSERT_TRUE(f.engine_said(0, 1, Phase::READY, 1));
  ASSERT_TRUE(f.engine_said(1, 1, Phase::READY, 1));
  f.want({{"a", 1}, {"a", 1}}, 2);
  EXPECT_EQ(f.due(2), (std::vector<fleet_order>{{fleet_order::what::start, 2, 1, "a"}}));
  EXPECT_FALSE(f.is_idle("b"));
  ASSERT_TRUE(f.engine_said(2, 1, Phase::READY, 3));
  EXPECT_EQ(f.due(3), (std::vector<fleet_order>{{fleet_order::what::drain, 1, 1, "b"}}));
  ASSERT_TRUE(f.engine_said(1, 1, Phase::GONE, 4));
  (void)f.due(4);
  EXPECT_TRUE(f.is_idle("b"));
  EXPECT_TRUE(f.settled());
}

/// One that leads on `a`, with ranks on `b` and on `c`.
struct wide_engine {
  wide_engine() {
    for (const char* host : {"a", "b", "c"}) f.host_joined(host);
    f.want({{"a", 1, {"a", "b", "b", "c"}}}, 0);
  }
  static fleet_order kill(uint32_t epoch, const std::string& host) {
    return {fleet_order::what::kill, 0, epoch, host};
  }
  Phase phase() const { return f.engines().at(0).phase; }
  fleet f{{.restart_ms = 10}};
};

engine_place on_device(const std::string& device, uint32_t version = 1) {
  return {.host = "a", .version = version, .devices = {device}};
}

/// Two engines that serve, each on a device of its own, and the same of a newer file wanted.
fleet two_that_are_replaced() {
  fleet f({.restart_ms = 10});
  f.host_joined("a");
  f.want({on_device("cuda:0"), on_device("cuda:1")}, 0);
  EXPECT_EQ(f.due(0).size(), 2u);
  EXPECT_TRUE(f.engine_said(0, 1, Phase::READY, 1) && f.engine_said(1, 1, Phase::READY, 1));
  f.want({on_device("cuda:0", 2), on_device("cuda:1", 2)}, 2);
  return f;
}

using orders = std::vector<fleet_order>;

TEST(Fleet, WhoseDeviceASuccessorNeedsLeavesFirstOneAfterTheOther) {
  auto f = two_that_are_replaced();
  EXPECT_EQ(f.due(2), (orders{{fleet_order::what::drain, 0, 1, "a"}}));
  EXPECT_EQ(f.due(3), orders{}) << "it is still there";
  ASSERT_TRUE(f.engine_said(0, 1, Phase::GONE, 4));
  EXPECT_EQ(f.due(4), (orders{{fleet_order::what::start, 2, 1, "a"}}));
  EXPECT_EQ(f.due(5), orders{}) << "or nobody would serve";
  ASSERT_TRUE(f.engine_said(2, 1, Phase::READY, 6));
  EXPECT_EQ(f.due(6), (orders{{fleet_order::what::drain, 1, 1, "a"}}));
  ASSERT_TRUE(f.engine_said(1, 1, Phase::GONE, 7));
  EXPECT_EQ(f.due(7), (orders{{fleet_order::what::start, 3, 1, "a"}}));
  ASSERT_TRUE(f.engine_said(3, 1, Phase::READY, 8));
  EXPECT_EQ(f.due(8), orders{});
  EXPECT_TRUE(f.settled());
}

TEST(Fleet, WhoIsOnCoresMakesNoRoomForADevice) {
  fleet f({});
  f.host_joined("a");
  f.want({{.host = "a", .version = 1}, on_device("cuda:0")}, 0);
  (void)f.due(0);
  ASSERT_TRUE(f.engine_said(0, 1, Phase::READY, 1) && f.engine_said(1, 1, Phase::READY, 1));
  f.want({{.host = "a", .version = 2}, on_device("cuda:0", 2)}, 2);
  EXPECT_EQ(f.due(2), (orders{{fleet_order::what::start, 2, 1, "a"}}));
  ASSERT_TRUE(f.engine_said(2, 1, Phase::READY, 3));
  EXPECT_EQ(f.due(3), (orders{{fleet_order::what::drain, 1, 1, "a"}}));
  ASSERT_TRUE(f.engine_said(1, 1, Phase::GONE, 4));
  EXPECT_EQ(f.due(4), (orders{{fleet_order::what::start, 3, 1, "a"}}));
  ASSERT_TRUE(f.engine_said(3, 1, Phase::READY, 5));
  EXPECT_EQ(f.due(5), (orders{{fleet_order::what::drain, 0, 1, "a"}}));
}

TEST(Fleet, ASuccessorThatFailsCostsNoOtherDevice) {
  auto f = two_that_are_replaced();
  ASSERT_EQ(f.due(2).size(), 1u);
  ASSERT_TRUE(f.engine_said(0, 1, Phase::GONE, 4));
  ASSERT_EQ(f.due(4).size(), 1u);
  ASSERT_TRUE(f.engine_ended(2, 1, "other weights", 5));
  EXPECT_EQ(f.due(6), orders{});
  EXPECT_EQ(f.due(20), (orders{{fleet_order::what::start, 2, 2, "a"}})) << "tried again";
  EXPECT_EQ(f.engines().at(1).phase, Phase::READY);
}

TEST(Fleet, AnEngineThatNeedsSeveralDevicesWaitsForAll) {
  auto f = two_that_are_replaced();
  f.want({{.host = "a", .version = 3, .devices = {"cuda:0", "cuda:1"}}}, 2);
  EXPECT_EQ(f.due(2), (orders{{fleet_order::what::drain, 0, 1, "a"}}));
  ASSERT_TRUE(f.engine_said(0, 1, Phase::GONE, 3));
  EXPECT_EQ(f.due(3), (orders{{fleet_order::what::drain, 1, 1, "a"}}));
  EXPECT_EQ(f.due(4), orders{});
  ASSERT_TRUE(f.engine_said(1, 1, Phase::GONE, 5));
  EXPECT_EQ(f.due(5), (orders{{fleet_order::what::start, 4, 1, "a"}}));
}

TEST(Fleet, OtherDevicesAreInNobodysWay) {
  engine_place one = on_device("cuda:0"), same = on_device("cuda:0", 2);
  EXPECT_TRUE(one.collides(same));
  EXPECT_FALSE(one.collides(on_device("cuda:1")));
  EXPECT_FALSE(one.collides({.host = "b", .devices = {"cuda:0"}}));
  EXPECT_TRUE(one.collides({.host = "b", .ranks = {"b", "a"}, .devices = {"cuda:1", "cuda:0"}}));
  EXPECT_FALSE(one.collides({.host = "b", .ranks = {"b", "a"}, .devices = {"cuda:0", "cuda:1"}}));
  EXPECT_FALSE(one.collides({.host = "a"})) << "on cores";
}

TEST(Fleet, AnEngineOfManyHostsBeginsWhenAllAreThere) {
  wide_engine e;
  e.f.host_lost("c", 0);
  EXPECT_EQ(e.f.due(1), (std::vector<fleet_order>{}));
  e.f.host_joined("c");
  EXPECT_EQ(e.f.due(2), (std::vector<fleet_order>{{fleet_order::what::start, 0, 1, "a"}}));
  for (const char* host : {"a", "b", "c"}) EXPECT_FALSE(e.f.is_idle(host)) << host;
}

TEST(Fleet, WhatAnEngineHadOnOtherHostsEndsWithIt) {
  wide_engine e;
  EXPECT_EQ(e.f.due(0).size(), 1u);
  EXPECT_TRUE(e.f.engine_said(0, 1, Phase::READY, 1));
  EXPECT_TRUE(e.f.engine_ended(0, 1, "rank 2: its process ended", 2));
  EXPECT_EQ(e.f.due(3), (std::vector<fleet_order>{e.kill(1, "b"), e.kill(1, "c")}));
  EXPECT_EQ(e.f.due(4), (std::vector<fleet_order>{})) << "each once";
  EXPECT_EQ(e.f.due(20), (std::vector<fleet_order>{{fleet_order::what::start, 0, 2, "a"}}));
}

TEST(Fleet, ALostHostOfItsRanksEndsAnEngineWithoutAFailure) {
  for (std::string lost : {"a", "b", "c"}) {
    wide_engine e;
    (void)e.f.due(0);
    EXPECT_TRUE(e.f.engine_said(0, 1, Phase::READY, 1));
    e.f.host_lost(lost, 2);
    std::vector<fleet_order> others;
    for (const char* host : {"a", "b", "c"})
      if (host != lost) others.push_back(e.kill(1, host));
    EXPECT_EQ(e.f.due(2), others);
    EXPECT_EQ(e.phase(), Phase::WAITING);
    EXPECT_TRUE(e.f.engines().at(0).failures.empty());
    e.f.host_joined(lost);
    EXPECT_EQ(e.f.due(3), (std::vector<fleet_order>{{fleet_order::what::start, 0, 2, "a"}}));
  }
}

TEST(Fleet, AHostWithRanksThatLeavesDrainsTheirEngine) {
  wide_engine e;
  (void)e.f.due(0);
  EXPECT_TRUE(e.f.engine_said(0, 1, Phase::READY, 1));
  e.f.host_leaves("c");
  EXPECT_EQ(e.f.due(2), (std::vector<fleet_order>{{fleet_order::what::drain, 0, 1, "a"}}));
  EXPECT_FALSE(e.f.is_idle("c"));
  EXPECT_TRUE(e.f.engine_ended(0, 1, "", 3));
  EXPECT_EQ(e.f.due(3), (std::vector<fleet_order>{e.kill(1, "b"), e.kill(1, "c")}));
  EXPECT_TRUE(e.f.is_idle("c"));
}

/// One engine that fails as soon as it is started; when it was, and when it was parked.
struct failing_engine {
  explicit failing_engine(const fleet_rules& rules) : f(rules) {
    f.host_joined("a");
    f.want(places(1), 0);
  }
  const engine_instance& engine() const { return f.engines().at(0); }
  /// The next start, each millisecond looked at; then it fails at once.
  std::optional<fleet_time> start_and_fail(fleet_time until) {
    for (; now <= until; ++now) {
      auto orders = f.due(now);
      if (orders.empty()) continue;
      EXPECT_EQ(orders.size(), 1u);
      EXPECT_EQ(orders[0].kind, fleet_order::what::start);
      EXPECT_TRUE(f.engine_ended(0, orders[0].epoch, "weights: too few bytes", now));
      return now;
    }
    return {};
  }
  fleet f;
  fleet_time now = 0;
};

TEST(Fleet, WaitsTwiceAsLongAfterEachFailureUpToTheMost) {
  failing_engine e({.restart_ms = 100, .restart_max_ms = 1000, .restarts = 100});
  std::vector<fleet_time> starts;
  for (int i = 0; i < 7; ++i) starts.push_back(*e.start_and_fail(100'000));
  std::vector<fleet_time> gaps;
  for (size_t i = 1; i < starts.size(); ++i) gaps.push_back(starts[i] - starts[i - 1]);
  EXPECT_EQ(gaps, (std::vector<fleet_time>{100, 200, 400, 800, 1000, 1000}));
  EXPECT_EQ(e.engine().restarts, 6u);
  EXPECT_EQ(e.engine().epoch, 7u);
}

TEST(Fleet, ManyDoublingsAreStillAtMostTheMost) {
  failing_engine e({.restart_ms = 600'000, .restart_max_ms = 3'600'000, .restarts = 1000});
  for (int i = 0; i < 70; ++i) {
    ASSERT_TRUE(e.f.engine_ended(0, e.engine().epoch, "x", e.now) || i == 0);
    auto wait = e.engine().phase == Phase::WAITING ? e.engine().retry_at - e.now : 0;
    EXPECT_LE(wait, 3'600'000u);
    e.now += 3'600'000;
    ASSERT_EQ(e.f.due(e.now).size(), 1u);
  }
}

TEST(Fleet, IsParkedWithItsReasonAfterTooManyFailures) {
  for (uint32_t allowed : {0u, 1u, 5u}) {
    failing_engine e({.restart_ms = 10, .restarts = allowed});
    for (uint32_t i = 0; i <= allowed; ++i) {
      EXPECT_NE(e.engine().phase, Phase::PARKED) << "after " << i << " of " << allowed;
      ASSERT_TRUE(e.start_and_fail(10'000)) << i;
    }
    EXPECT_EQ(e.engine().phase, Phase::PARKED) << allowed;
    EXPECT_EQ(e.engine().reason, "weights: too few bytes");
    EXPECT_FALSE(e.start_and_fail(e.now + 1'000'000));
    EXPECT_FALSE(e.f.settled());
  }
}

TEST(Fleet, FailuresThatAreLongPastDoNotPark) {
  failing_engine e({.restart_ms = 1, .restart_max_ms = 1, .restarts = 2, .memory_ms = 1000});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(e.start_and_fail(1'000'000)) << i;
    e.now += 600;  // two within the memory, never three
  }
  EXPECT_NE(e.engine().phase, Phase::PARKED);
  EXPECT_LE(e.engine().failures.size(), 2u);
}

TEST(Fleet, AParkedEngineIsTriedAnewWhenSomeoneSaysWhatIsWanted) {
  failing_engine e({.restart_ms = 100, .restarts = 1});
  ASSERT_TRUE(e.start_and_fail(10'000));
  ASSERT_TRUE(e.start_and_fail(10'000));
  ASSERT_EQ(e.engine().phase, Phase::PARKED);
  auto parked_at = e.now;
  e.f.want(places(1), e.now);
  EXPECT_EQ(*e.start_and_fail(10'000), parked_at);  // at once, and with all its tries again
  EXPECT_EQ(e.engine().phase, Phase::WAITING);
  EXPECT_EQ(*e.start_and_fail(10'000), parked_at + 100);
  EXPECT_EQ(e.engine().phase, Phase::PARKED);
  e.f.want(places(1), e.now);
  ASSERT_EQ(e.f.due(e.now).size(), 1u);
  EXPECT_TRUE(e.f.engine_said(0, e.engine().epoch, Phase::READY, e.now));
  EXPECT_TRUE(e.f.settled());
}

TEST(Fleet, AParkedEngineThatNobodyWantsGoes) {
  failing_engine e({.restarts = 0});
  e.f.want(places(2), 0);
  auto orders = e.f.due(0);
  ASSERT_EQ(orders.size(), 2u);
  ASSERT_TRUE(e.f.engine_ended(0, 1, "weights", 1));
  ASSERT_TRUE(e.f.engine_said(1, 1, Phase::READY, 1));
  ASSERT_EQ(e.engine().phase, Phase::PARKED);
  e.f.want(places(1), 2);
  EXPECT_TRUE(e.f.due(2).empty());
  (void)e.f.due(3);
  EXPECT_FALSE(e.f.engines().contains(0));
  EXPECT_TRUE(e.f.settled());
}

TEST(Fleet, EachStartHasAnEpochOfItsOwn) {
  failing_engine e({.restart_ms = 1, .restarts = 100});
  for (uint32_t epoch = 1; epoch < 6; ++epoch) {
    ASSERT_TRUE(e.start_and_fail(10'000));
    EXPECT_EQ(e.engine().epoch, epoch);
    EXPECT_FALSE(e.f.engine_said(0, epoch, Phase::READY, e.now));  // its word comes too late
  }
  ++e.now;
  e.now = e.engine().retry_at;
  ASSERT_EQ(e.f.due(e.now).size(), 1u);
  EXPECT_FALSE(e.f.engine_said(0, 5, Phase::READY, e.now));
  EXPECT_FALSE(e.f.engine_said(0, 7, Phase::READY, e.now));
  EXPECT_TRUE(e.f.engine_said(0, 6, Phase::READY, e.now));
}

TEST(Fleet, AnEngineDecidesNothingThatIsTheDirectorysToDecide) {
  failing_engine e({});
  ASSERT_EQ(e.f.due(0).size(), 1u);
  for (Phase p : {Phase::WAITING, Phase::FAILED, Phase::PARKED, Phase(99)})
    EXPECT_FALSE(e.f.engine_said(0, 1, p, 1)) << int(p);
  EXPECT_EQ(e.engine().phase, Phase::STARTING);
}

TEST(Fleet, OneThatIsNeverReadyIsKilledAndTheOrderRepeated) {
  failing_engine e({.start_ms = 1000});
  ASSERT_EQ(e.f.due(0).size(), 1u);
  ASSERT_TRUE(e.f.engine_said(0, 1, Phase::LOADING, 10));
  EXPECT_TRUE(e.f.due(1009).empty());
  std::vector<fleet_order> kill{{fleet_order::what::kill, 0, 1, "a"}};
  EXPECT_EQ(e.f.due(1010), kill);
  EXPECT_TRUE(e.f.due(2009).empty());
  EXPECT_EQ(e.f.due(2010), kill);  // the first was lost
  EXPECT_EQ(e.engine().reason, "it was not ready in time");
}

TEST(Fleet, ALostHostsEnginesWaitForItAndAreNotToBlame) {
  failing_engine e({.restarts = 0});
  ASSERT_EQ(e.f.due(0).size(), 1u);
  e.f.host_lost("a", 5);
  EXPECT_EQ(e.engine().phase, Phase::WAITING);
  EXPECT_EQ(e.engine().reason, "its host was lost");
  EXPECT_TRUE(e.f.due(1000).empty());
  e.f.host_joined("a");
  ASSERT_EQ(e.f.due(1000).size(), 1u);
  EXPECT_EQ(e.engine().epoch, 2u);
}

/// One of two engines has been told to leave; it does not.
fleet draining(fleet::haste haste) {
  fleet f({.drain_ms = 100});
  f.host_joined("a");
  f.want(places(2), 0);
  (void)f.due(0);
  EXPECT_TRUE(f.engine_said(0, 1, Phase::READY, 1));
  EXPECT_TRUE(f.engine_said(1, 1, Phase::READY, 1));
  f.want(places(1), 10, haste);
  EXPECT_EQ(f.due(10), (std::vector<fleet_order>{{fleet_order::what::drain, 1, 1, "a"}}));
  return f;
}
const std::vector<fleet_order> killed = {{fleet_order::what::kill, 1, 1, "a"}};

TEST(Fleet, WhatLeavesInHasteIsKilledWhenItsTimeIsOver) {
  auto f = draining(fleet::haste::drain_ms);
  EXPECT_TRUE(f.due(109).empty());
  EXPECT_EQ(f.due(110), killed);
}

TEST(Fleet, WhatLeavesByLoadFinishesUnlessTheClusterGoesDown) {
  auto f = draining(fleet::haste::none);
  f.want(places(1), 20);  // a file that says the same changes nothing of it
  EXPECT_TRUE(f.due(1'000'000).empty());
  f.leave(1'000'000);
  EXPECT_EQ(f.due(1'000'050), (std::vector<fleet_order>{{fleet_order::what::drain, 0, 1, "a"}}));
  EXPECT_TRUE(f.due(1'000'099).empty());
  EXPECT_EQ(f.due(1'000'100), killed);
}

TEST(Fleet, AnEngineThatIsWantedAgainForgetsItsPatience) {
  fleet f({.drain_ms = 100});
  f.host_joined("a");
  f.want(places(2), 0);
  (void)f.due(0);
  ASSERT_TRUE(f.engine_said(1, 1, Phase::READY, 1));
  f.want(places(1), 1, fleet::haste::none);  // 1 stays, and 0 has not begun to serve
  f.want(places(2), 1);
  ASSERT_TRUE(f.engine_said(0, 1, Phase::READY, 2));
  ASSERT_TRUE(f.retire(0, 3));
  EXPECT_EQ(f.due(3), (std::vector<fleet_order>{{fleet_order::what::drain, 0, 1, "a"}}));
  EXPECT_EQ(f.due(103), (std::vector<fleet_order>{{fleet_order::what::kill, 0, 1, "a"}}));
}

}  // namespace
}  // namespace lethe
