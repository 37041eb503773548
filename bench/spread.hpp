#pragma once

#include <algorithm>
#include <vector>

namespace lethe::bench {

struct spread {
  double p10 = 0, median = 0, p90 = 0;
};

inline spread spread_of(std::vector<double> v) {
  if (v.empty()) return {};
  std::ranges::sort(v);
  return {v[v.size() / 10], v[v.size() / 2], v[v.size() * 9 / 10]};
}

}  // namespace lethe::bench
