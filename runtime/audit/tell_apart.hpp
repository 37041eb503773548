#pragma once

#include <string>
#include <vector>

#include "runtime/audit/statistics.hpp"

namespace lethe::audit {

/// What was noticed of one thing, as numbers; all rows of a set have the same length.
using feature_row = std::vector<double>;
/// By what is to be guessed: several rows of each.
using rows_by_label = std::vector<std::vector<feature_row>>;

struct told_apart {
  proportion made;       // of right guesses
  std::string by;        // the classifier
  double by_chance = 1;  // share of right guesses of who knows nothing
};

/// Learns from every other row of each label and guesses the labels of the rest, by the nearest
/// rows or by a forest of random trees: whichever guesses better within what is learnt from, so
/// that the rows guessed at choose nothing. Labels should have the same number of rows.
told_apart tell_apart(const rows_by_label& rows, uint64_t seed);

}  // namespace lethe::audit
