#include "runtime/trace/trace_stats.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace lethe {

namespace {

using stats_key = std::pair<uint64_t, actor_kind>;

template <class KeyOf>
std::vector<message_stats> stats_of(const timeline& t, std::span<const uint32_t> events,
                                    KeyOf&& key_of) {
  struct durations {
    std::vector<int64_t> queue, handling;
  };
  std::map<stats_key, durations> all;
  for (uint32_t i : events) {
    const auto& e = t.events[i];
    auto& into = all[key_of(e)];
    into.handling.push_back(e.handled_ns);
    if (e.waited_ns) into.queue.push_back(*e.waited_ns);
  }
  std::vector<message_stats> stats;
  for (auto& [key, d] : all) {
    size_t count = d.handling.size();
    stats.push_back({key.first, key.second, count, quantiles_of(std::move(d.queue)),
                     quantiles_of(std::move(d.handling))});
  }
  return stats;
}

std::vector<uint32_t> all_events(const timeline& t) {
  std::vector<uint32_t> all(t.events.size());
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

}  // namespace

quantiles quantiles_of(std::vector<int64_t> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  auto rank = [&](size_t percent) { return values[(values.size() * percent + 99) / 100 - 1]; };
  return {values.size(), rank(50), rank(99), values.back()};
}

std::vector<message_stats> slowest(const timeline& t, slow_by by) {
  auto all = all_events(t);
  auto stats = stats_of(t, all, [](const traced_event& e) {
    return stats_key{e.type, e.receiver.kind};
  });
  std::ranges::stable_sort(stats, std::greater<>(), [by](const message_stats& s) {
    return by == slow_by::queue ? s.queue.p99_ns : s.handling.p99_ns;
  });
  return stats;
}

std::vector<message_stats> stats_by_type(const trace_side& side) {
  auto key = [](const traced_event& e) { return stats_key{e.type, actor_kind::none}; };
  if (side.request) return stats_of(*side.of, side.request->events, key);
  return stats_of(*side.of, all_events(*side.of), key);
}

std::vector<stats_pair> diff(const trace_side& a, const trace_side& b) {
  std::map<uint64_t, stats_pair> pairs;
  for (auto& s : stats_by_type(a)) pairs[s.type].a = s;
  for (auto& s : stats_by_type(b)) pairs[s.type].b = s;
  std::vector<stats_pair> all;
  for (auto& [type, p] : pairs) {
    p.type = type;
    all.push_back(p);
  }
  return all;
}

}  // namespace lethe
