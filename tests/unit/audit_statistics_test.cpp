// What an audit decides by, against tables, closed forms and sums that are done another way.
#include "runtime/audit/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace lethe::audit {
namespace {

TEST(AuditStatistics, NormalQuantilesAreThoseOfTables) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-9);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963985, 1e-8);
  EXPECT_NEAR(normal_quantile(0.999), 3.090232306, 1e-8);
  EXPECT_NEAR(normal_quantile(1e-6), -4.753424309, 1e-8);
}

TEST(AuditStatistics, ChiSquareTailsAreThoseOfTables) {
  EXPECT_NEAR(chi_square_tail(3.841458821, 1), 0.05, 1e-9);
  EXPECT_NEAR(chi_square_tail(11.07049769, 5), 0.05, 1e-9);
  EXPECT_NEAR(chi_square_tail(24.32188635, 7), 0.001, 1e-9);
  EXPECT_NEAR(chi_square_tail(124.3421134, 100), 0.05, 1e-9);
  EXPECT_EQ(chi_square_tail(0, 3), 1);
}

/// Two degrees of freedom have a closed form, exp(-x / 2), far into the tail.
TEST(AuditStatistics, ChiSquareTailsAreExactFarOut) {
  for (double x : {0.1, 1.0, 5.0, 30.0, 300.0, 1000.0})
    EXPECT_NEAR(chi_square_tail(x, 2) / std::exp(-x / 2), 1, 1e-10) << x;
  for (double df : {1.0, 3.0, 16.0, 99.0})
    for (double tail : {0.5, 0.01, 1e-6, 1e-12})
      EXPECT_NEAR(chi_square_tail(chi_square_critical(tail, df), df) / tail, 1, 1e-6);
}

/// With one degree of freedom it is a normal number's square.
TEST(AuditStatistics, NoncentralTailsAreThoseOfAShiftedNormal) {
  auto normal = [](double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; };
  for (double shift : {0.0, 0.5, 3.0, 8.0})
    for (double x : {0.5, 10.0, 40.0})
      EXPECT_NEAR(noncentral_tail(x, 1, shift * shift),
                  normal(shift - std::sqrt(x)) + normal(-shift - std::sqrt(x)), 1e-10);
}

TEST(AuditStatistics, FourEqualNodesNeed18914Draws) {
  const std::vector<double> four(4, 0.25);
  EXPECT_EQ(draws_needed(four), 18'914u);
  // Those of the taxonomy's A4: alpha 0.01, power 0.99.
  EXPECT_EQ(draws_needed(four, {.bias = 1.5, .tail = 0.01, .power = 0.99}), 292u);
  EXPECT_EQ(draws_needed(four, {.bias = 1.25, .tail = 0.01, .power = 0.99}), 1'114u);
  EXPECT_EQ(draws_needed(four, {.bias = 1.1, .tail = 0.01, .power = 0.99}), 6'699u);
}

/// The formula is a normal one; the test that it is for is exact.
TEST(AuditStatistics, SoManyDrawsFindTheBiasWithThatPower) {
  for (double share : {0.25, 0.1, 1.0 / 15}) {
    const uint64_t n = tries_needed(share);
    uint64_t k = uint64_t(double(n) * share);
    while (binomial_at_least(k, n, share) > alpha) ++k;
    EXPECT_NEAR(binomial_at_least(k, n, bias_to_find * share), wanted_power, 4e-4) << share;
  }
  EXPECT_GT(fit_power(std::vector<double>(4, 0.25), 18'914), 0.99);
  EXPECT_LT(fit_power(std::vector<double>(4, 0.25), 5'000), 0.5);
}

TEST(AuditStatistics, TheSmallestShareNeedsMost) {
  const double shares[] = {0.1, 0.4, 0.5};
  EXPECT_EQ(draws_needed(shares), tries_needed(0.1));
  EXPECT_GT(tries_needed(0.1), tries_needed(0.4));
}

/// Summed up term by term.
double binomial_sum(uint64_t from, uint64_t to, uint64_t n, double p) {
  double sum = 0;
  for (uint64_t k = from; k <= to; ++k)
    sum += std::exp(std::lgamma(double(n) + 1) - std::lgamma(double(k) + 1) -
                    std::lgamma(double(n - k) + 1) + double(k) * std::log(p) +
                    double(n - k) * std::log1p(-p));
  return sum;
}

TEST(AuditStatistics, BinomialTailsAreExact) {
  EXPECT_NEAR(binomial_at_least(8, 10, 0.5), 56.0 / 1024, 1e-14);
  for (uint64_t k : {0u, 1u, 30u, 39u, 60u, 100u}) {
    EXPECT_NEAR(binomial_at_least(k, 100, 0.3), binomial_sum(k, 100, 100, 0.3), 1e-12) << k;
    EXPECT_NEAR(binomial_at_most(k, 100, 0.3), binomial_sum(0, k, 100, 0.3), 1e-12) << k;
  }
  const double far = binomial_sum(5'100, 20'000, 20'000, 0.25 / 1.1);
  EXPECT_NEAR(binomial_at_least(5'100, 20'000, 0.25 / 1.1) / far, 1, 1e-7);
  EXPECT_EQ(binomial_at_least(0, 5, 0.2), 1);
  EXPECT_EQ(binomial_at_least(6, 5, 0.2), 0);
  EXPECT_EQ(binomial_at_most(5, 5, 0.2), 1);
  EXPECT_NEAR(binomial_two_sided(5, 10, 0.5), 1, 1e-12);
  EXPECT_NEAR(binomial_two_sided(0, 10, 0.5), 2.0 / 1024, 1e-14);
}

/// R. G. Newcombe, Interval estimation for the difference between independent proportions (1998),
/// table II, method 10.
TEST(AuditStatistics, IntervalsOfDifferencesAreThePublishedOnes) {
  struct {
    proportion a, b;
    double low, high;
  } cases[] = {{{56, 70}, {48, 80}, 0.0524, 0.3339}, {{9, 10}, {3, 10}, 0.1705, 0.8090},
               {{6, 7}, {2, 7}, 0.0582, 0.8062},     {{5, 56}, {0, 29}, -0.0381, 0.1926},
               {{0, 10}, {0, 20}, -0.1611, 0.2775},  {{10, 10}, {0, 20}, 0.6791, 1.0}};
  for (const auto& c : cases) {
    const interval i = difference_interval(c.a, c.b, 0.95);
    EXPECT_NEAR(i.low, c.low, 6e-5);
    EXPECT_NEAR(i.high, c.high, 6e-5);
  }
}

TEST(AuditStatistics, GoodnessOfFitIsPearsons) {
  const uint64_t dice[] = {5, 8, 9, 8, 10, 20};
  const auto r = goodness_of_fit(dice, std::vector<double>(6, 1.0 / 6));
  EXPECT_NEAR(r.statistic, 13.4, 1e-12);
  EXPECT_EQ(r.df, 5u);
  EXPECT_NEAR(r.p, 0.019905, 1e-6);
  const uint64_t impossible[] = {1, 5};
  EXPECT_EQ(goodness_of_fit(impossible, std::vector<double>{0, 1}).p, 0);
  const uint64_t one[] = {7};
  EXPECT_EQ(goodness_of_fit(one, std::vector<double>{1}).p, 1);
}

TEST(AuditStatistics, HomogeneityComparesRows) {
  const auto r = homogeneity({{10, 20, 30}, {20, 20, 20}});
  EXPECT_NEAR(r.statistic, 2 * 25.0 / 15 + 2 * 25.0 / 25, 1e-12);
  EXPECT_EQ(r.df, 2u);
  EXPECT_EQ(homogeneity({{10, 20}, {100, 200}}).statistic, 0);
  EXPECT_EQ(homogeneity({{10, 0}, {100, 0}}).p, 1);  // a node that nobody got tells nothing
  EXPECT_LT(homogeneity({{1000, 2000}, {2000, 1000}}).p, 1e-100);
}

TEST(AuditStatistics, TheAreaUnderRocCountsPairs) {
  const double high[] = {3, 4, 5, 2}, low[] = {1, 2, 3};
  EXPECT_NEAR(auc(high, low).area, (2.5 + 3 + 3 + 1.5) / 12, 1e-12);  // ties count half
  EXPECT_NEAR(auc(low, high).area, 1 - 10.0 / 12, 1e-12);
  const double apart[] = {10, 11, 12};
  EXPECT_EQ(auc(apart, low).area, 1);
  std::vector<double> even(400), odd(400);
  for (size_t i = 0; i < 400; ++i) even[i] = double(2 * (i * 7919 % 400)), odd[i] = even[i] + 1;
  const auto same = auc(even, odd, 0.95);
  EXPECT_NEAR(same.area, 0.5, 0.01);
  // For n pairs that say nothing, 1.96 / sqrt(6 n).
  EXPECT_NEAR(same.within.high - same.within.low, 2 * 1.96 / std::sqrt(6.0 * 400), 0.002);
}

TEST(AuditStatistics, ChancesAreSumsOfBinomialTerms) {
  EXPECT_NEAR(binomial_at_least({5, 10}, 0.5), 0.623046875, 1e-12);
  EXPECT_NEAR(binomial_at_least({10, 10}, 0.5), 1.0 / 1024, 1e-12);
  EXPECT_EQ(binomial_at_least({0, 10}, 0.5), 1);
  EXPECT_EQ(binomial_at_least({1, 10}, 0), 0);
  EXPECT_EQ(binomial_at_least({1, 10}, 1), 1);
  EXPECT_LT(binomial_at_least({100, 1000}, 0.02), 1e-30);
}

TEST(AuditStatistics, GuessesOfOneChanceAddUpLikeThoseOfTheirOwn) {
  const std::vector<double> same(40, 0.3), other = {0.5, 1, 0};
  for (uint64_t right : {0u, 5u, 12u, 40u})
    EXPECT_NEAR(successes_at_least(right, same), binomial_at_least({right, 40}, 0.3), 1e-12)
        << right;
  EXPECT_NEAR(successes_at_least(1, other), 1, 1e-12);
  EXPECT_NEAR(successes_at_least(2, other), 0.5, 1e-12);
  EXPECT_NEAR(successes_at_least(3, other), 0, 1e-12);
}

/// As Clopper and Pearson have them.
TEST(AuditStatistics, IntervalsAreExact) {
  auto none = exact_interval({0, 10}, 0.05), some = exact_interval({8, 10}, 0.05);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 0.30850, 1e-4);
  EXPECT_NEAR(some.low, 0.44390, 1e-4);
  EXPECT_NEAR(some.high, 0.97479, 1e-4);
  EXPECT_EQ(exact_interval({10, 10}, 0.05).high, 1);
}

TEST(AuditStatistics, AreasCountTiesHalf) {
  const std::vector<double> low = {1, 2, 3}, high = {4, 5}, same = {2, 2};
  EXPECT_EQ(auc(high, low).area, 1);
  EXPECT_EQ(auc(low, high).area, 0);
  EXPECT_EQ(auc(low, low).area, 0.5);
  EXPECT_EQ(auc(same, low).area, 0.5);
  EXPECT_NEAR(auc_deviation(800, 800), 0.0144, 1e-4);
}

}  // namespace
}  // namespace lethe::audit
