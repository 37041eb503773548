#include "runtime/audit/tell_apart.hpp"

#include <cmath>

#include "runtime/audit/forest.hpp"

namespace lethe::audit {

namespace {

/// Each column with mean 0 and deviation 1 in what is learnt from; 0 where it says nothing.
class scale {
 public:
  explicit scale(const labelled& from)
      : mean_(from.rows.front().size()), width_(from.rows.front().size()) {
    const double n = double(from.rows.size());
    for (const auto& row : from.rows)
      for (size_t i = 0; i < row.size(); ++i) mean_[i] += row[i] / n;
    for (const auto& row : from.rows)
      for (size_t i = 0; i < row.size(); ++i) width_[i] += std::pow(row[i] - mean_[i], 2) / n;
    for (double& w : width_) w = std::sqrt(w);
  }
  void apply(labelled& to) const {
    for (auto& row : to.rows)
      for (size_t i = 0; i < row.size(); ++i) {
        bool says = width_[i] > 1e-9 * (1 + std::abs(mean_[i]));
        row[i] = says ? (row[i] - mean_[i]) / width_[i] : 0;
      }
  }

 private:
  std::vector<double> mean_, width_;
};

double distance(const feature_row& a, const feature_row& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum;
}

/// By the three nearest, the nearer the more.
uint32_t guess_by_neighbours(const labelled& known, const feature_row& row) {
  constexpr size_t neighbours = 3;
  std::vector<std::pair<double, uint32_t>> near;
  for (size_t i = 0; i < known.rows.size(); ++i)
    near.emplace_back(distance(known.rows[i], row), known.labels[i]);
  const size_t n = std::min(neighbours, near.size());
  std::ranges::partial_sort(near, near.begin() + ptrdiff_t(n));
  std::vector<double> votes(known.kinds);
  for (size_t i = 0; i < n; ++i) votes[near[i].second] += 1 / (near[i].first + 1e-9);
  return uint32_t(std::ranges::max_element(votes) - votes.begin());
}

proportion by_neighbours(const labelled& known, const labelled& asked) {
  proportion made{.of = asked.rows.size()};
  for (size_t i = 0; i < asked.rows.size(); ++i)
    made.hits += guess_by_neighbours(known, asked.rows[i]) == asked.labels[i];
  return made;
}

proportion by_forest(const labelled& known, const labelled& asked, uint64_t seed) {
  forest trees(known, seed);
  proportion made{.of = asked.rows.size()};
  for (size_t i = 0; i < asked.rows.size(); ++i)
    made.hits += trees.guess(asked.rows[i]) == asked.labels[i];
  return made;
}

/// Every other row of each label to one side.
std::pair<labelled, labelled> halves(const labelled& all) {
  labelled even{.kinds = all.kinds}, odd = even;
  std::vector<uint32_t> seen(all.kinds);
  for (size_t i = 0; i < all.rows.size(); ++i)
    (seen[all.labels[i]]++ % 2 ? odd : even).add(all.rows[i], all.labels[i]);
  return {std::move(even), std::move(odd)};
}

labelled flat(const rows_by_label& rows) {
  labelled all{.kinds = uint32_t(rows.size())};
  for (uint32_t label = 0; label < rows.size(); ++label)
    for (const auto& row : rows[label]) all.add(row, label);
  return all;
}

/// Of who always names the label that has the most rows.
double share_of_largest(const labelled& asked) {
  std::vector<size_t> rows(asked.kinds);
  for (uint32_t label : asked.labels) ++rows[label];
  return double(std::ranges::max(rows)) / double(asked.rows.size());
}

bool forest_is_better(const labelled& known, uint64_t seed) {
  auto [fit, tried] = halves(known);
  if (tried.rows.empty()) return true;
  return by_forest(fit, tried, seed).hits >= by_neighbours(fit, tried).hits;
}

}  // namespace

told_apart tell_apart(const rows_by_label& rows, uint64_t seed) {
  auto [known, asked] = halves(flat(rows));
  if (asked.rows.empty()) return {};
  scale same(known);
  same.apply(known);
  same.apply(asked);
  told_apart out{.by_chance = share_of_largest(asked)};
  const bool trees = forest_is_better(known, seed);
  out.by = trees ? "a forest of random trees" : "the nearest neighbours";
  out.made = trees ? by_forest(known, asked, seed) : by_neighbours(known, asked);
  return out;
}

}  // namespace lethe::audit
