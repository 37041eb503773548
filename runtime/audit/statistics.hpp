#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// The tests that an audit decides by. Those that many audits repeat use alpha 1e-6, so that none
/// of them cries wolf, and enough draws that what they look for is all but surely found.
namespace lethe::audit {

inline constexpr double alpha = 1e-6, wanted_power = 0.999, bias_to_find = 1.1;

/// The z below which a standard normal number is with that probability.
double normal_quantile(double p);

/// P(X >= x) for chi-square with so many degrees of freedom, and the x for such a probability.
double chi_square_tail(double x, double df);
double chi_square_critical(double tail, double df);
/// The same tail of a noncentral one: the power of a test whose effect is `lambda` in all.
double noncentral_tail(double x, double df, double lambda);

struct chi_square_result {
  double statistic = 0, p = 1;
  uint32_t df = 0;
};
/// Counts against shares that come to 1.
chi_square_result goodness_of_fit(std::span<const uint64_t> counts, std::span<const double> shares);
/// Whether rows of one length (users) come from one distribution over the columns (nodes).
chi_square_result homogeneity(const std::vector<std::vector<uint64_t>>& rows);

struct power_wanted {
  double bias = bias_to_find, tail = alpha, power = wanted_power;
};
/// How many tries it takes to find, by a one-sided binomial test, that what should happen with
/// probability p happens `bias` times as often.
uint64_t tries_needed(double p, const power_wanted& wanted = {});
/// So many that it is found of any node, whatever its share; the smallest one needs most.
uint64_t draws_needed(std::span<const double> shares, const power_wanted& wanted = {});
/// The power of goodness of fit to find that the node with the smallest share gets `bias` times as
/// much, and the others evenly less.
double fit_power(std::span<const double> shares, uint64_t draws, const power_wanted& wanted = {});

struct proportion {
  uint64_t hits = 0, of = 0;
  double share() const { return of ? double(hits) / double(of) : 0; }
};

/// Exactly P(X >= k) and P(X <= k) of n tries, each a success with probability p.
double binomial_at_least(uint64_t k, uint64_t n, double p);
double binomial_at_most(uint64_t k, uint64_t n, double p);
inline double binomial_at_least(const proportion& x, double p) {
  return binomial_at_least(x.hits, x.of, p);
}
/// Twice the smaller one.
double binomial_two_sided(uint64_t k, uint64_t n, double p);
/// Exactly P(X >= k) where each try has a probability of its own.
double successes_at_least(uint64_t k, std::span<const double> probabilities);

struct interval {
  double low = 0, high = 0;
  bool holds(double x) const { return low <= x && x <= high; }
  bool inside(double bound) const { return -bound < low && high < bound; }
};

/// Wilson's interval of one, and Newcombe's of a difference made of two of those (method 10).
interval proportion_interval(const proportion& x, double confidence = 0.99);
interval difference_interval(const proportion& a, const proportion& b, double confidence = 0.99);
/// Clopper's and Pearson's: what lies outside is refuted, each side with probability tail / 2 at
/// most.
interval exact_interval(const proportion& x, double tail);

/// How well a score tells two classes apart: 0.5 is not at all. The interval is DeLong's.
struct area_under_roc {
  double area = 0.5;
  interval within;
};
area_under_roc auc(std::span<const double> positives, std::span<const double> negatives,
                   double confidence = 0.99);
/// The standard deviation of the area where both classes are alike.
double auc_deviation(uint64_t positives, uint64_t negatives);

}  // namespace lethe::audit
