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

}  // namespace
}  // namespace lethe
