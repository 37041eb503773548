#include "runtime/trace/stuck.hpp"

#include <algorithm>
#include <map>

#include "runtime/trace/trace_stats.hpp"

namespace lethe {

std::vector<stuck_request> stuck_requests(const timeline& t, int64_t least_ns) {
  std::vector<stuck_request> stuck;
  for (const auto& r : t.requests) {
    if (!r.submitted || r.released) continue;
    // In causal order: the latest by time may be of a clock that errs.
    stuck_request s{&r, std::max<int64_t>(0, t.now_ns - r.end_ns), r.events.back()};
    if (s.silent_ns >= least_ns) stuck.push_back(s);
  }
  std::ranges::stable_sort(stuck, std::greater<>(), &stuck_request::silent_ns);
  return stuck;
}

std::vector<growing_queue> growing_queues(const timeline& t) {
  std::map<std::pair<uint32_t, uint64_t>, std::vector<int64_t>> waits;
  for (const auto& e : t.events)
    if (e.waited_ns) waits[{e.process, e.receiver.packed()}].push_back(*e.waited_ns);
  std::vector<growing_queue> growing;
  for (const auto& [key, of] : waits) {
    if (of.size() < growing_messages_least) continue;
    auto middle = of.begin() + ptrdiff_t(of.size() / 2);
    growing_queue q{key.first, actor_tag::unpacked(key.second), of.size(),
                    quantiles_of({of.begin(), middle}).p50_ns,
                    quantiles_of({middle, of.end()}).p50_ns};
    if (q.after_ns >= growing_wait_least_ns && q.after_ns / 2 >= q.before_ns) growing.push_back(q);
  }
  std::ranges::stable_sort(growing, std::greater<>(), &growing_queue::after_ns);
  return growing;
}

}  // namespace lethe
