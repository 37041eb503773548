#include "runtime/audit/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/base/check.hpp"

namespace lethe::audit {

namespace {

constexpr double tiny = 1e-300, closer_than = 1e-15;
constexpr int terms_max = 100'000;

/// Lentz's way through a continued fraction: b0 + a1/(b1 + a2/(b2 + ...)); `next(i)` is {ai, bi}.
template <class Next>
double continued_fraction(double b0, Next next) {
  double f = b0 == 0 ? tiny : b0, c = f, d = 0;
  for (int i = 1; i < terms_max; ++i) {
    const auto [a, b] = next(i);
    d = b + a * d;
    d = 1 / (d == 0 ? tiny : d);
    c = b + a / c;
    if (c == 0) c = tiny;
    f *= c * d;
    if (std::abs(c * d - 1) < closer_than) break;
  }
  return f;
}

/// The upper part of the gamma function's integral, of 1 (DLMF 8.7.1 and 8.9.2).
double gamma_upper(double a, double x) {
  if (x <= 0) return 1;
  const double front = std::exp(a * std::log(x) - x - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (int i = 1; i < terms_max && term > sum * closer_than; ++i) sum += term *= x / (a + i);
    return 1 - front * sum;
  }
  return front / continued_fraction(
                     x + 1 - a, [&](int i) { return std::pair(-i * (i - a), x + 1 - a + 2 * i); });
}

/// The regularized incomplete beta function (DLMF 8.17.22).
double beta_lower(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - beta_lower(b, a, 1 - x);
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  return front / a / continued_fraction(1, [&](int i) {
           const double m = i / 2;
           const double d = i % 2 ? -(a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1))
                                  : m * (b - m) / ((a + 2 * m - 1) * (a + 2 * m));
           return std::pair(d * x, 1.0);
         });
}

/// Where a function that rises reaches `wanted`.
template <class Rising>
double where(double low, double high, double wanted, Rising f) {
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = (low + high) / 2;
    (f(middle) < wanted ? low : high) = middle;
  }
  return high;
}

/// Ranks from 1 on; those that are equal share the mean of theirs.
std::vector<double> mid_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t from = 0, to = 0; from < order.size(); from = to) {
    while (to < order.size() && values[order[to]] == values[order[from]]) ++to;
    for (size_t i = from; i < to; ++i) ranks[order[i]] = double(from + to + 1) / 2;
  }
  return ranks;
}

/// What each value of a class says of the area, and how much they scatter, over their number.
struct placements {
  double mean = 0, variance = 0;
};
placements placed(std::span<const double> in_all, std::span<const double> in_own, double others) {
  placements p;
  for (size_t i = 0; i < in_own.size(); ++i) p.mean += (in_all[i] - in_own[i]) / others;
  p.mean /= double(in_own.size());
  for (size_t i = 0; i < in_own.size(); ++i)
    p.variance += std::pow((in_all[i] - in_own[i]) / others - p.mean, 2);
  p.variance /= double(in_own.size() - 1) * double(in_own.size());
  return p;
}

}  // namespace

double normal_quantile(double p) {
  return where(-40, 40, p, [](double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; });
}

double chi_square_tail(double x, double df) { return gamma_upper(df / 2, x / 2); }

double chi_square_critical(double tail, double df) {
  return where(0, df + 2000, -tail, [&](double x) { return -chi_square_tail(x, df); });
}

/// A mixture of central ones, by how often a Poisson number comes.
double noncentral_tail(double x, double df, double lambda) {
  const double half = lambda / 2, terms = half + 20 * std::sqrt(half) + 100;
  double sum = 0;
  for (double j = 0; j < terms; ++j) {
    const double weight =
        half == 0 ? double(j == 0) : std::exp(j * std::log(half) - half - std::lgamma(j + 1));
    if (weight > tiny) sum += weight * chi_square_tail(x, df + 2 * j);
  }
  return std::min(sum, 1.0);
}

chi_square_result goodness_of_fit(std::span<const uint64_t> counts,
                                  std::span<const double> shares) {
  check(counts.size() == shares.size() && !counts.empty());
  const double all = double(std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
  chi_square_result r{.df = uint32_t(counts.size() - 1)};
  for (size_t i = 0; i < counts.size(); ++i) {
    const double due = all * shares[i];
    if (due > 0)
      r.statistic += std::pow(double(counts[i]) - due, 2) / due;
    else if (counts[i])
      r.statistic = std::numeric_limits<double>::infinity();
  }
  if (r.df > 0) r.p = std::isinf(r.statistic) ? 0 : chi_square_tail(r.statistic, r.df);
  return r;
}

chi_square_result homogeneity(const std::vector<std::vector<uint64_t>>& rows) {
  check(!rows.empty());
  std::vector<double> columns(rows[0].size());
  double all = 0;
  for (const auto& row : rows) {
    check(row.size() == columns.size());
    for (size_t i = 0; i < row.size(); ++i) columns[i] += double(row[i]), all += double(row[i]);
  }
  chi_square_result r;
  const auto seen = std::ranges::count_if(columns, [](double c) { return c > 0; });
  if (seen < 2 || rows.size() < 2) return r;
  r.df = uint32_t(seen - 1) * uint32_t(rows.size() - 1);
  for (const auto& row : rows) {
    const double of_row = double(std::accumulate(row.begin(), row.end(), uint64_t{0}));
    for (size_t i = 0; i < row.size(); ++i)
      if (const double due = of_row * columns[i] / all; due > 0)
        r.statistic += std::pow(double(row[i]) - due, 2) / due;
  }
  r.p = chi_square_tail(r.statistic, r.df);
  return r;
}

uint64_t tries_needed(double p, const power_wanted& wanted) {
  const double more = wanted.bias * p;
  check(p > 0 && more < 1 && wanted.bias > 1);
  const double spread = -normal_quantile(wanted.tail) * std::sqrt(p * (1 - p)) -
                        normal_quantile(1 - wanted.power) * std::sqrt(more * (1 - more));
  return uint64_t(std::ceil(std::pow(spread / (more - p), 2)));
}

uint64_t draws_needed(std::span<const double> shares, const power_wanted& wanted) {
  return shares.size() < 2 ? 0 : tries_needed(std::ranges::min(shares), wanted);
}

/// A node of share p that gets b p, and all others (1 - b p) / (1 - p) of theirs, adds
/// (b - 1)^2 p / (1 - p) to the noncentrality with each draw.
double fit_power(std::span<const double> shares, uint64_t draws, const power_wanted& wanted) {
  const double df = double(shares.size() - 1), least = std::ranges::min(shares);
  const double effect = std::pow(wanted.bias - 1, 2) * least / (1 - least);
  return noncentral_tail(chi_square_critical(wanted.tail, df), df, double(draws) * effect);
}

double binomial_at_least(uint64_t k, uint64_t n, double p) {
  if (k == 0) return 1;
  return k > n ? 0 : beta_lower(double(k), double(n - k) + 1, p);
}
double binomial_at_most(uint64_t k, uint64_t n, double p) {
  return k >= n ? 1 : beta_lower(double(n - k), double(k) + 1, 1 - p);
}
double binomial_two_sided(uint64_t k, uint64_t n, double p) {
  return std::min(1.0, 2 * std::min(binomial_at_least(k, n, p), binomial_at_most(k, n, p)));
}

double successes_at_least(uint64_t k, std::span<const double> probabilities) {
  std::vector<double> by_count{1};  // so far
  for (double p : probabilities) {
    by_count.push_back(0);
    for (size_t i = by_count.size() - 1; i > 0; --i)
      by_count[i] = by_count[i] * (1 - p) + by_count[i - 1] * p;
    by_count[0] *= 1 - p;
  }
  double tail = 0;
  for (size_t i = k; i < by_count.size(); ++i) tail += by_count[i];
  return std::min(tail, 1.0);
}

interval proportion_interval(const proportion& x, double confidence) {
  if (x.of == 0) return {0, 1};
  const double z = normal_quantile((1 + confidence) / 2), n = double(x.of), p = x.share();
  const double middle = p + z * z / (2 * n);
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {std::max(0.0, (middle - half) / (1 + z * z / n)),
          std::min(1.0, (middle + half) / (1 + z * z / n))};
}

interval difference_interval(const proportion& a, const proportion& b, double confidence) {
  const interval ia = proportion_interval(a, confidence), ib = proportion_interval(b, confidence);
  const double pa = a.share(), pb = b.share();
  return {pa - pb - std::hypot(pa - ia.low, ib.high - pb),
          pa - pb + std::hypot(ia.high - pa, pb - ib.low)};
}

interval exact_interval(const proportion& x, double tail) {
  interval r{0, 1};
  if (x.hits > 0)
    r.low = where(0, 1, tail / 2, [&](double p) { return binomial_at_least(x.hits, x.of, p); });
  if (x.hits < x.of)
    r.high = where(0, 1, -tail / 2, [&](double p) { return -binomial_at_most(x.hits, x.of, p); });
  return r;
}

area_under_roc auc(std::span<const double> positives, std::span<const double> negatives,
                   double confidence) {
  check(positives.size() > 1 && negatives.size() > 1);
  std::vector<double> all(positives.begin(), positives.end());
  all.insert(all.end(), negatives.begin(), negatives.end());
  const auto ranks = mid_ranks(all);
  const std::span<const double> both = ranks;
  const auto above =
      placed(both.first(positives.size()), mid_ranks(positives), double(negatives.size()));
  const auto below =
      placed(both.subspan(positives.size()), mid_ranks(negatives), double(positives.size()));
  const double half =
      normal_quantile((1 + confidence) / 2) * std::sqrt(above.variance + below.variance);
  return {above.mean, {std::max(0.0, above.mean - half), std::min(1.0, above.mean + half)}};
}

double auc_deviation(uint64_t positives, uint64_t negatives) {
  const double n = double(positives), m = double(negatives);
  return std::sqrt((n + m + 1) / (12 * n * m));
}

}  // namespace lethe::audit
