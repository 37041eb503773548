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
