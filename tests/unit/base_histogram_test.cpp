#include "runtime/base/histogram.hpp"

#include <gtest/gtest.h>

namespace lethe {
namespace {

TEST(Histogram, AValueAtABoundBelongsToItAndOneAboveToTheNext) {
  for (size_t i = 0; i < time_bounds_us.size(); ++i) {
    time_histogram below, at, above;
    below.add(time_bounds_us[i] - 1);
    at.add(time_bounds_us[i]);
    above.add(time_bounds_us[i] + 1);
    EXPECT_EQ(below.counts[i], 1u) << i;
    EXPECT_EQ(at.counts[i], 1u) << i;
    EXPECT_EQ(above.counts[i + 1], 1u) << i;
    EXPECT_EQ(above.sum, time_bounds_us[i] + 1);
  }
}

TEST(Histogram, ZeroIsInTheFirstAndWhatIsAboveAllInTheLast) {
  token_histogram h;
  h.add(0);
  h.add(UINT32_MAX, 3);
  EXPECT_EQ(h.counts.front(), 1u);
  EXPECT_EQ(h.counts.back(), 3u);
  EXPECT_EQ(h.sum, 3 * uint64_t{UINT32_MAX});
}

TEST(Histogram, BoundsRise) {
  EXPECT_TRUE(std::ranges::is_sorted(time_bounds_us, std::ranges::less_equal()));
  EXPECT_TRUE(std::ranges::is_sorted(token_bounds, std::ranges::less_equal()));
}

TEST(Histogram, TwoAddUp) {
  token_histogram a, b, both;
  for (uint64_t v : {1, 5, 100}) a.add(v), both.add(v);
  for (uint64_t v : {5, 70'000}) b.add(v), both.add(v);
  a.add(b);
  EXPECT_EQ(a, both);
}

}  // namespace
}  // namespace lethe
