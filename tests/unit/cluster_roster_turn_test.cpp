#include "runtime/cluster/roster_turn.hpp"

#include <gtest/gtest.h>

namespace lethe {
namespace {

using engines = roster_turn::engines;

std::vector<std::byte> node(int n) { return {std::byte(n)}; }

/// A turn whose first roster, number 8, has engines 0 and 1.
roster_turn published() {
  roster_turn turn;
  turn.want(7, 60'000, 0);
  auto asks = turn.due({{0, 1}, {1, 1}}, 0);
  EXPECT_TRUE(asks && asks->roster == 8);
  turn.answered(0, 1, 8, node(10));
  turn.answered(1, 1, 8, node(11));
  EXPECT_TRUE(turn.complete(1));
  turn.want(8, 60'000, 2);
  return turn;
}

TEST(RosterTurn, NothingBeginsBeforeRostersAreWantedOrWithoutEngines) {
  roster_turn turn;
  EXPECT_FALSE(turn.due({{0, 1}}, 0));
  turn.want(0, 60'000, 0);
  EXPECT_FALSE(turn.due({}, 0));
  EXPECT_TRUE(turn.due({{0, 1}}, 0));
}

TEST(RosterTurn, IsCompleteOnceWhenAllHaveAnswered) {
  roster_turn turn;
  turn.want(7, 60'000, 0);
  auto asks = turn.due({{0, 1}, {3, 2}}, 0);
  ASSERT_TRUE(asks);
  EXPECT_EQ(asks->whom, (engines{{0, 1}, {3, 2}}));
  turn.answered(3, 2, 8, node(3));
  EXPECT_FALSE(turn.complete(1));
  turn.answered(0, 1, 8, node(0));
  auto whole = turn.complete(1);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->number, 8u);
  ASSERT_EQ(whole->keys.size(), 2u);
  EXPECT_EQ(whole->keys[1].slot, 3);
  EXPECT_EQ(whole->keys[1].node, node(3));
  EXPECT_FALSE(turn.complete(1));
}

TEST(RosterTurn, OneThatOwesItsKeyIsLeftOutWhenPatienceIsOver) {
  roster_turn turn;
  turn.want(0, 60'000, 0);
  ASSERT_TRUE(turn.due({{0, 1}, {1, 1}}, 0));
  turn.answered(1, 1, 1, node(1));
  EXPECT_FALSE(turn.complete(roster_turn::patience_ms - 1));
  auto whole = turn.complete(roster_turn::patience_ms);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->keys.size(), 1u);
}

TEST(RosterTurn, AnswersOfAnotherRosterEpochOrEngineDoNotCount) {
  roster_turn turn;
  turn.want(0, 60'000, 0);
  ASSERT_TRUE(turn.due({{0, 1}}, 0));
  turn.answered(0, 1, 2, node(1));
  turn.answered(0, 2, 1, node(1));
  turn.answered(1, 1, 1, node(1));
  EXPECT_FALSE(turn.complete(0));
  EXPECT_FALSE(turn.complete(roster_turn::patience_ms));  // nobody: there is no such roster
}

TEST(RosterTurn, TheNextBeginsWhenItsTimeHasComeAndNotBefore) {
  auto turn = published();
  engines same{{0, 1}, {1, 1}};
  EXPECT_FALSE(turn.due(same, 59'999));
  auto next = turn.due(same, 60'000);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->roster, 9u);
}

TEST(RosterTurn, OtherEnginesBeginOneEarlyButNeverCloserThanFiveSeconds) {
  auto turn = published();
  engines other{{0, 1}, {1, 2}};
  EXPECT_FALSE(turn.due(other, roster_turn::apart_ms - 1));
  EXPECT_TRUE(turn.due(other, roster_turn::apart_ms));
  auto alone = published();
  EXPECT_TRUE(alone.due({{0, 1}}, roster_turn::apart_ms));
}

TEST(RosterTurn, ARosterThatWasNotLoggedIsAskedForAgainUnderItsNumber) {
  auto turn = published();
  ASSERT_TRUE(turn.due({{0, 1}}, 10'000));
  turn.answered(0, 1, 9, node(1));
  ASSERT_TRUE(turn.complete(10'000));
  EXPECT_FALSE(turn.due({{0, 1}}, 10'000 + roster_turn::apart_ms));  // the log still works on it
  turn.want(8, 60'000, 11'000);                                      // and says that it didn't
  auto again = turn.due({{0, 1}}, 10'000 + roster_turn::apart_ms);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->roster, 9u);
}

}  // namespace
}  // namespace lethe
