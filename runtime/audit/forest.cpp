#include "runtime/audit/forest.hpp"

#include <cmath>
#include <numeric>

namespace lethe::audit {

namespace {

/// Sum of squares over sum: the larger, the fewer labels.
double purity_of(std::span<const uint32_t> counts) {
  double squares = 0, sum = 0;
  for (uint32_t c : counts) squares += double(c) * c, sum += c;
  return sum > 0 ? squares / sum : 0;
}

double drawn(std::mt19937_64& dice, double low, double high) {
  return low + (high - low) * (double(dice() >> 11) * 0x1p-53);
}

}  // namespace

forest::forest(const labelled& from, uint64_t seed, uint32_t trees)
    : dice_(seed), kinds_(from.kinds) {
  std::vector<uint32_t> all(from.rows.size());
  for (uint32_t i = 0; i < trees; ++i) {
    std::iota(all.begin(), all.end(), 0u);
    roots_.push_back(grow(from, all));
  }
}

uint32_t forest::grow(const labelled& from, rows_in rows) {
  const auto at = uint32_t(nodes_.size());
  nodes_.emplace_back();
  auto label = [&](uint32_t row) { return from.labels[row]; };
  const bool pure =
      std::ranges::all_of(rows, [&](uint32_t row) { return label(row) == label(rows.front()); });
  const split s = pure ? split() : best_split(from, rows);
  if (s.column < 0) {
    for (uint32_t row : rows) nodes_[at].labels.push_back(label(row));
    return at;
  }
  auto middle = std::partition(rows.begin(), rows.end(), [&](uint32_t row) {
    return from.rows[row][size_t(s.column)] < s.cut;
  });
  const auto below = size_t(middle - rows.begin());
  const uint32_t left = grow(from, rows.first(below)), right = grow(from, rows.subspan(below));
  nodes_[at] = {s.column, s.cut, left, right, {}};
  return at;
}

forest::split forest::best_split(const labelled& from, rows_in rows) {
  const size_t columns = from.rows.front().size();
  const auto wanted = std::max<size_t>(4, size_t(std::sqrt(double(columns))));
  split best;
  std::vector<uint32_t> below(kinds_), above(kinds_);
  for (size_t tried = 0, found = 0; tried < 4 * columns && found < wanted; ++tried) {
    const size_t column = dice_() % columns;
    auto value = [&](uint32_t row) { return from.rows[row][column]; };
    auto [low, high] = std::ranges::minmax(rows, {}, value);
    const double from_value = value(low), to_value = value(high);
    if (!(from_value < to_value)) continue;
    ++found;
    const double cut =
        std::max(drawn(dice_, from_value, to_value), std::nextafter(from_value, to_value));
    std::ranges::fill(below, 0u);
    std::ranges::fill(above, 0u);
    for (uint32_t row : rows) ++(value(row) < cut ? below : above)[from.labels[row]];
    const double purity = purity_of(below) + purity_of(above);
    if (purity > best.purity) best = {int32_t(column), cut, purity};
  }
  return best;
}

uint32_t forest::guess(const feature_row& row) const {
  std::vector<double> votes(kinds_);
  for (uint32_t at : roots_) {
    while (nodes_[at].column >= 0)
      at = row[size_t(nodes_[at].column)] < nodes_[at].cut ? nodes_[at].below : nodes_[at].above;
    for (uint32_t label : nodes_[at].labels) votes[label] += 1 / double(nodes_[at].labels.size());
  }
  return uint32_t(std::ranges::max_element(votes) - votes.begin());
}

}  // namespace lethe::audit
