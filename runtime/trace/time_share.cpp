#include "runtime/trace/time_share.hpp"

#include <algorithm>
#include <array>

namespace lethe {

namespace {

enum part : size_t { handling, transfer, waiting, parts };

struct edge {
  int64_t at;
  part of;
  int change;
};

void add(std::vector<edge>& edges, part of, int64_t from, int64_t to) {
  if (from >= to) return;
  edges.push_back({from, of, 1});
  edges.push_back({to, of, -1});
}

}  // namespace

time_share share_of(const timeline& t, const traced_request& r) {
  std::vector<edge> edges;
  for (uint32_t i : r.events) {
    const auto& e = t.events[i];
    add(edges, handling, e.at_ns, e.end_ns());
    if (e.left_ns) add(edges, e.crosses() ? transfer : waiting, *e.left_ns, e.at_ns);
  }
  std::ranges::sort(edges, {}, &edge::at);
  time_share share;
  int64_t* into[] = {&share.handling_ns, &share.transfer_ns, &share.waiting_ns};
  std::array<int, parts> open{};
  int64_t at = r.begin_ns;
  auto pass_until = [&](int64_t until) {
    auto* first = &share.between_ns;
    for (size_t p = parts; p-- > 0;)
      if (open[p] > 0) first = into[p];
    *first += until - at;
    at = until;
  };
  for (const auto& e : edges) {
    pass_until(e.at);
    open[e.of] += e.change;
  }
  pass_until(r.end_ns);
  return share;
}

}  // namespace lethe
