#pragma once

#include <algorithm>
#include <random>

#include "runtime/audit/tell_apart.hpp"

namespace lethe::audit {

/// Rows and what each of them is.
struct labelled {
  std::vector<feature_row> rows;
  std::vector<uint32_t> labels;
  uint32_t kinds = 0;  // labels are below

  void add(const feature_row& row, uint32_t label) {
    rows.push_back(row);
    labels.push_back(label);
  }
};

/// Extremely randomized trees (Geurts, Ernst, Wehenkel 2006): each split is the best of a few
/// random columns cut at random places, each leaf holds one label. Its rows are not kept.
class forest {
 public:
  forest(const labelled& from, uint64_t seed, uint32_t trees = 64);
  uint32_t guess(const feature_row& row) const;

 private:
  struct node {
    int32_t column = -1;  // below 0: a leaf
    double cut = 0;
    uint32_t below = 0, above = 0;  // nodes
    std::vector<uint32_t> labels;   // of a leaf's rows
  };
  struct split {
    int32_t column = -1;
    double cut = 0, purity = -1;
  };
  using rows_in = std::span<uint32_t>;

  uint32_t grow(const labelled& from, rows_in rows);
  split best_split(const labelled& from, rows_in rows);

  std::mt19937_64 dice_;
  std::vector<node> nodes_;
  std::vector<uint32_t> roots_;
  uint32_t kinds_;
};

}  // namespace lethe::audit
