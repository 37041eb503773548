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

}  // namespace
}  // namespace lethe
