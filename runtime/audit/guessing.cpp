#include "runtime/audit/guessing.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lethe::audit {

namespace {

double log_term(uint64_t k, uint64_t n, double p) {
  return std::lgamma(double(n) + 1) - std::lgamma(double(k) + 1) - std::lgamma(double(n - k) + 1) +
         double(k) * std::log(p) + double(n - k) * std::log1p(-p);
}

/// Of k in [from, to].
double sum_of_terms(uint64_t from, uint64_t to, uint64_t n, double p) {
  double sum = 0;
  for (uint64_t k = from; k <= to; ++k) sum += std::exp(log_term(k, n, p));
  return std::min(sum, 1.0);
}

/// The probability at which `holds` turns from true to false.
template <class Holds>
double turning_point(Holds holds) {
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    double middle = (low + high) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

double chance_of(const guesses& g, double p) {
  if (g.right == 0 || p >= 1) return 1;
  if (p <= 0) return 0;
  return sum_of_terms(g.right, g.tries, g.tries, p);
}

double chance_of(uint64_t right, std::span<const double> each) {
  std::vector<double> sum{1};  // by how many are right so far
  for (double p : each) {
    sum.push_back(0);
    for (size_t k = sum.size() - 1; k > 0; --k) sum[k] = sum[k] * (1 - p) + sum[k - 1] * p;
    sum[0] *= 1 - p;
  }
  double tail = 0;
  for (size_t k = right; k < sum.size(); ++k) tail += sum[k];
  return std::min(tail, 1.0);
}

range interval_of(const guesses& g, double alpha) {
  range r;
  if (g.tries == 0) return r;
  if (g.right > 0) r.low = turning_point([&](double p) { return chance_of(g, p) < alpha / 2; });
  if (g.right < g.tries)
    r.high = turning_point(
        [&](double p) { return p <= 0 || sum_of_terms(0, g.right, g.tries, p) >= alpha / 2; });
  return r;
}

double auc(std::span<const double> less, std::span<const double> more) {
  if (less.empty() || more.empty()) return 0.5;
  std::vector<double> sorted(less.begin(), less.end());
  std::ranges::sort(sorted);
  double above = 0;
  for (double m : more) {
    auto equal = std::ranges::equal_range(sorted, m);
    above += double(equal.begin() - sorted.begin()) + double(equal.size()) / 2;
  }
  return above / double(less.size()) / double(more.size());
}

double auc_deviation(uint64_t less, uint64_t more) {
  double n = double(less), m = double(more);
  return std::sqrt((n + m + 1) / (12 * n * m));
}

}  // namespace lethe::audit
