#include "runtime/audit/guessing.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lethe::audit {
namespace {

TEST(Guessing, ChancesAreSumsOfBinomialTerms) {
  EXPECT_NEAR(chance_of({5, 10}, 0.5), 0.623046875, 1e-12);
  EXPECT_NEAR(chance_of({10, 10}, 0.5), 1.0 / 1024, 1e-12);
  EXPECT_EQ(chance_of({0, 10}, 0.5), 1);
  EXPECT_EQ(chance_of({1, 10}, 0), 0);
  EXPECT_EQ(chance_of({1, 10}, 1), 1);
  EXPECT_LT(chance_of({100, 1000}, 0.02), 1e-30);
}

TEST(Guessing, GuessesOfOneChanceAddUpLikeThoseOfTheirOwn) {
  const std::vector<double> same(40, 0.3), other = {0.5, 1, 0};
  for (uint64_t right : {0u, 5u, 12u, 40u})
    EXPECT_NEAR(chance_of(right, same), chance_of({right, 40}, 0.3), 1e-12) << right;
  EXPECT_NEAR(chance_of(1, other), 1, 1e-12);
  EXPECT_NEAR(chance_of(2, other), 0.5, 1e-12);
  EXPECT_NEAR(chance_of(3, other), 0, 1e-12);
}

/// As Clopper and Pearson have them.
TEST(Guessing, IntervalsAreExact) {
  auto none = interval_of({0, 10}, 0.05), some = interval_of({8, 10}, 0.05);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 0.30850, 1e-4);
  EXPECT_NEAR(some.low, 0.44390, 1e-4);
  EXPECT_NEAR(some.high, 0.97479, 1e-4);
  EXPECT_EQ(interval_of({10, 10}, 0.05).high, 1);
}

TEST(Guessing, AreasCountTiesHalf) {
  const std::vector<double> low = {1, 2, 3}, high = {4, 5}, same = {2, 2};
  EXPECT_EQ(auc(low, high), 1);
  EXPECT_EQ(auc(high, low), 0);
  EXPECT_EQ(auc(low, low), 0.5);
  EXPECT_EQ(auc(low, same), 0.5);
  EXPECT_NEAR(auc_deviation(800, 800), 0.0144, 1e-4);
}

}  // namespace
}  // namespace lethe::audit
