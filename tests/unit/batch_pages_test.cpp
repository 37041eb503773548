#include "runtime/batch/pages.hpp"

#include <gtest/gtest.h>

namespace lethe {
namespace {

TEST(Pages, RoundUp) {
  EXPECT_EQ(pages_for(0, 16), 0u);
  EXPECT_EQ(pages_for(1, 16), 1u);
  EXPECT_EQ(pages_for(16, 16), 1u);
  EXPECT_EQ(pages_for(17, 16), 2u);
  EXPECT_EQ(pages_for(~0u, 1), ~0u);
}

TEST(Pages, AreFreeAtOnceWhenNothingWasWritten) {
  page_pool pool = make_page_pool(2);
  uint32_t id = take_page(pool);
  EXPECT_EQ(pool.used, 1u);
  EXPECT_FALSE(drop_page(pool, id));
  EXPECT_EQ(pool.free.size(), 2u);
}

TEST(Pages, RetireWhenTheLastHolderIsGoneAndAreFreeWhenWiped) {
  page_pool pool = make_page_pool(1);
  uint32_t id = take_page(pool);
  mark_written(pool, id);
  mark_written(pool, id);
  EXPECT_EQ(pool.holding, 1u);
  share_page(pool, id);
  EXPECT_FALSE(drop_page(pool, id));
  EXPECT_EQ(pool.used, 1u);
  EXPECT_TRUE(drop_page(pool, id));
  EXPECT_EQ(pool.used + pool.holding, 0u);
  EXPECT_EQ(pool.retiring, 1u);
  EXPECT_TRUE(pool.free.empty());
  free_wiped_page(pool, id);
  EXPECT_EQ(pool.retiring, 0u);
  EXPECT_EQ(take_page(pool), id);
  EXPECT_FALSE(pool.pages[id].written);
}

TEST(PagesDeathTest, EndTheProcessWhenMisused) {
  page_pool pool = make_page_pool(1);
  EXPECT_DEATH(drop_page(pool, 0), "broken invariant");
  EXPECT_DEATH(share_page(pool, 0), "broken invariant");
  EXPECT_DEATH(mark_written(pool, 0), "broken invariant");
  EXPECT_DEATH(free_wiped_page(pool, 0), "broken invariant");
  take_page(pool);
  EXPECT_DEATH(take_page(pool), "broken invariant");
  EXPECT_DEATH(free_wiped_page(pool, 0), "broken invariant") << "it is used";
}

}  // namespace
}  // namespace lethe
