#include <gtest/gtest.h>

#include <map>
#include <random>

#include "runtime/batch/token_counts.hpp"

namespace lethe {
namespace {

TEST(TokenCounts, CountsAsAMapWould) {
  token_counts mine(std::pmr::get_default_resource());
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> expected;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    uint32_t id = random() % 3000 * 64;
    if (random() % 2) {
      mine.add_output(id);
      ++expected[id].second;
    } else {
      mine.add_prompt(std::span(&id, 1));
      ++expected[id].first;
    }
  }
  EXPECT_EQ(mine.distinct(), expected.size());
  uint32_t seen = 0;
  mine.for_each([&](const token_counts::entry& e) {
    ++seen;
    EXPECT_EQ(std::pair(e.prompt, e.output), expected[e.id]);
    EXPECT_EQ(mine.of(e.id).output, e.output);
  });
  EXPECT_EQ(seen, expected.size());
  EXPECT_EQ(mine.of(1).prompt + mine.of(1).output, 0u);
}

TEST(TokenCounts, AForkGoesItsOwnWay) {
  token_counts one(std::pmr::get_default_resource());
  EXPECT_EQ(one.of(5).prompt, 0u);
  one.add_prompt(std::vector<uint32_t>{5, 5});
  auto two = one.fork(std::pmr::get_default_resource());
  two.add_output(5);
  EXPECT_EQ(one.of(5).output, 0u);
  EXPECT_EQ(two.of(5).output, 1u);
  EXPECT_EQ(two.of(5).prompt, 2u);
}

TEST(TokenCounts, TakesNoMemoryWithinItsReserve) {
  std::byte memory[30000];  // 2048 slots fit, 4096 do not
  std::pmr::monotonic_buffer_resource arena(memory, sizeof memory,
                                            std::pmr::null_memory_resource());
  token_counts counts(&arena);
  counts.reserve(1000);
  for (uint32_t id = 0; id < 1000; ++id) counts.add_output(id * 7);
  EXPECT_EQ(counts.distinct(), 1000u);
}

}  // namespace
}  // namespace lethe
