#include "runtime/trace/clocks.hpp"

#include <algorithm>
#include <map>

namespace lethe {

namespace {

struct interval {
  int64_t least = INT64_MIN, most = INT64_MAX;

  void narrow(int64_t from, int64_t to) {
    least = std::max(least, from);
    most = std::min(most, to);
  }
};

}  // namespace

std::vector<aligned_clock> align_clocks(const gathered& all) {
  std::map<std::string, interval> hosts;
  for (const auto& p : all.processes)
    if (p.answered())
      hosts[p.host].narrow(p.offset_ns - int64_t(p.error_ns), p.offset_ns + int64_t(p.error_ns));
  std::vector<aligned_clock> clocks;
  for (const auto& p : all.processes) {
    aligned_clock own{p.offset_ns, p.error_ns, false};
    if (p.answered()) {
      const auto& host = hosts.at(p.host);
      own.contradicted = host.least > host.most;
      if (!own.contradicted) {
        own.error_ns = uint64_t(host.most - host.least + 1) / 2;
        own.offset_ns = host.least + int64_t(own.error_ns);
      }
    }
    clocks.push_back(own);
  }
  return clocks;
}

}  // namespace lethe
