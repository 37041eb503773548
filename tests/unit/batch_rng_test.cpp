#include <gtest/gtest.h>

#include <set>

#include "runtime/batch/counter_rng.hpp"

namespace lethe {
namespace {

using words = std::array<uint32_t, 4>;

// The known answers of the generator's authors (Random123, kat_vectors, philox4x32 10).
TEST(CounterRng, GivesThePublishedAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t all = 0xffffffff;
  EXPECT_EQ(philox({all, all, all, all}, {all, all}),
            (words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRng, DependsOnSeedChoiceAndPosition) {
  double here = uniform_at(1, 2, 3);
  EXPECT_EQ(here, uniform_at(1, 2, 3));
  EXPECT_NE(here, uniform_at(2, 2, 3));
  EXPECT_NE(here, uniform_at(1 + (uint64_t{1} << 32), 2, 3));
  EXPECT_NE(here, uniform_at(1, 3, 3));
  EXPECT_NE(here, uniform_at(1, 2, 4));
  EXPECT_NE(uniform_at(1, 2, 3), uniform_at(1, 3, 2));
}

TEST(CounterRng, IsUniformBelowOne) {
  constexpr int draws = 100000, bins = 20;
  int counts[bins] = {};
  for (int i = 0; i < draws; ++i) {
    double u = uniform_at(48151, 0, uint32_t(i));
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ++counts[int(u * bins)];
  }
  double chi = 0, expected = double(draws) / bins;
  for (int n : counts) chi += (n - expected) * (n - expected) / expected;
  EXPECT_LT(chi, 43.8);  // 19 degrees of freedom, p = 0.001
}

}  // namespace
}  // namespace lethe
