#include "runtime/base/similar.hpp"

#include <algorithm>
#include <numeric>

namespace lethe {

namespace {

/// Levenshtein's distance, a row at a time.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> most_similar(std::string_view word,
                                        const std::vector<std::string>& known, size_t differ_most) {
  if (word.size() > 64) return {};
  std::optional<std::string> best;
  size_t least = SIZE_MAX;
  for (const auto& k : known) {
    size_t d = distance(word, k);
    if (d < least && d <= std::max(differ_most, k.size() / 3)) {
      least = d;
      best = k;
    }
  }
  return best;
}

}  // namespace lethe
