#include "actors/cluster/credit_window.hpp"

#include <gtest/gtest.h>

namespace lethe {
namespace {

TEST(CreditWindow, CountsPiecesThatWereTakenWholeAndTellsThemInBatches) {
  credit_window window;
  for (uint32_t i = 0; i < credit_window::batch; ++i) window.sent(10);
  window.drained(10 * credit_window::batch - 1);
  EXPECT_EQ(window.due(), 0u);
  window.drained(1);
  EXPECT_EQ(window.due(), credit_window::batch);
  EXPECT_EQ(window.due(), 0u);
}

TEST(CreditWindow, APieceWithoutBytesIsTakenWhenItsTurnComes) {
  credit_window window;
  window.sent(1);
  for (uint32_t i = 1; i < credit_window::batch; ++i) window.sent(0);
  EXPECT_EQ(window.due(), 0u);
  window.drained(1);
  EXPECT_EQ(window.due(), credit_window::batch);
}

TEST(CreditWindow, MoreBytesThanWereSentAreNobodys) {
  credit_window window;
  for (uint32_t i = 0; i < credit_window::batch; ++i) window.sent(1);
  window.drained(1000);
  EXPECT_EQ(window.due(), credit_window::batch);
  window.drained(1000);
  EXPECT_EQ(window.due(), 0u);
}

}  // namespace
}  // namespace lethe
