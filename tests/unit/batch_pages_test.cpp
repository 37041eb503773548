#include "runtime/batch/pages.hpp"

#include <gtest/gtest.h>

namespace lethe {
namespace {

using ids = std::vector<uint32_t>;

ids take(page_pool& pool, uint32_t count) {
  ids taken;
  take_pages(pool, count, taken);
  return taken;
}

TEST(Pages, RoundUp) {
  EXPECT_EQ(pages_for(0, 16), 0u);
  EXPECT_EQ(pages_for(1, 16), 1u);
  EXPECT_EQ(pages_for(16, 16), 1u);
  EXPECT_EQ(pages_for(17, 16), 2u);
  EXPECT_EQ(pages_for(~0u, 1), ~0u);
}

TEST(Pages, AreFreeAtOnceWhenNothingWasWritten) {
  page_pool pool = make_page_pool(2);
  uint32_t id = take(pool, 1)[0];
  EXPECT_EQ(pool.used, 1u);
  EXPECT_EQ(pool.free, 1u);
  EXPECT_FALSE(drop_page(pool, id));
  EXPECT_EQ(pool.free, 2u);
}

TEST(Pages, AreTheFirstNeighboursThatAreEnough) {
  page_pool pool = make_page_pool(16);
  ids all = take(pool, 16);
  EXPECT_EQ(all, (ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  for (uint32_t id : {0u, 2u, 3u, 5u, 6u, 7u, 8u, 10u, 11u, 12u, 15u}) drop_page(pool, id);
  EXPECT_EQ(take(pool, 1), (ids{0}));
  EXPECT_EQ(take(pool, 3), (ids{5, 6, 7}));
  EXPECT_EQ(take(pool, 2), (ids{2, 3}));
  EXPECT_EQ(take(pool, 0), ids{});
  EXPECT_EQ(pool.free, 5u);  // 8, 10 to 12, 15
}

TEST(Pages, AreTheMostNeighboursThereAreWhereNowhereAreEnough) {
  page_pool pool = make_page_pool(9);
  take(pool, 9);
  for (uint32_t id : {0u, 2u, 3u, 5u, 6u, 7u}) drop_page(pool, id);
  ids taken{100};
  take_pages(pool, 6, taken);
  EXPECT_EQ(taken, (ids{100, 5, 6, 7, 2, 3, 0}));
  EXPECT_EQ(pool.free, 0u);
  EXPECT_EQ(pool.used, 9u);
}

TEST(Pages, RetireWhenTheLastHolderIsGoneAndAreFreeWhenWiped) {
  page_pool pool = make_page_pool(1);
  uint32_t id = take(pool, 1)[0];
  mark_written(pool, id);
  mark_written(pool, id);
  EXPECT_EQ(pool.holding, 1u);
  share_page(pool, id);
  EXPECT_FALSE(drop_page(pool, id));
  EXPECT_EQ(pool.used, 1u);
  EXPECT_TRUE(drop_page(pool, id));
  EXPECT_EQ(pool.used + pool.holding, 0u);
  EXPECT_EQ(pool.retiring, 1u);
  EXPECT_EQ(pool.free, 0u);
  free_wiped_page(pool, id);
  EXPECT_EQ(pool.retiring, 0u);
  EXPECT_EQ(take(pool, 1), ids{id});
  EXPECT_FALSE(pool.pages[id].written);
}

TEST(PagesDeathTest, EndTheProcessWhenMisused) {
  page_pool pool = make_page_pool(1);
  EXPECT_DEATH(drop_page(pool, 0), "broken invariant");
  EXPECT_DEATH(share_page(pool, 0), "broken invariant");
  EXPECT_DEATH(mark_written(pool, 0), "broken invariant");
  EXPECT_DEATH(free_wiped_page(pool, 0), "broken invariant");
  take(pool, 1);
  EXPECT_DEATH(take(pool, 1), "broken invariant");
  EXPECT_DEATH(free_wiped_page(pool, 0), "broken invariant") << "it is used";
}

}  // namespace
}  // namespace lethe
