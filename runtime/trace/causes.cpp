#include <algorithm>
#include <cstdlib>
#include <map>
#include <queue>
#include <tuple>

#include "runtime/trace/timeline.hpp"
#include "schemas/messages.capnp.h"

namespace lethe::trace_detail {

namespace {

/// A message that is passed on goes outward from its sender: face, scheduler, directory,
/// supervisor, engine, request, or back.
int distance(const traced_event& e) {
  constexpr int places[] = {0, 0, 2, 3, 4, 5, 6};
  auto place = [&](actor_kind k) { return size_t(k) < std::size(places) ? places[size_t(k)] : 0; };
  return std::abs(place(e.receiver.kind) - place(e.sender.kind));
}

using message_key = std::tuple<uint64_t, uint64_t, uint64_t, int64_t, uint32_t>;
message_key key_of(const traced_event& e) {
  return {e.trace, e.type, e.sender.packed(), e.sent_raw_ns, e.bytes};
}

/// Copies of one message carry one stamp. Two messages to one actor are no copies, however alike.
void find_passed_on(std::vector<traced_event>& events) {
  std::map<message_key, std::vector<uint32_t>> copies;
  for (uint32_t i = 0; i < events.size(); ++i)
    if (events[i].sender.kind != actor_kind::none) copies[key_of(events[i])].push_back(i);
  for (auto& [key, of] : copies) {
    std::ranges::stable_sort(of, {}, [&](uint32_t i) { return distance(events[i]); });
    for (size_t i = 1; i < of.size(); ++i) {
      auto &before = events[of[i - 1]], &after = events[of[i]];
      if (before.receiver != after.receiver && distance(before) < distance(after))
        after.via = of[i - 1];
    }
  }
}

using actor_key = std::tuple<uint64_t, uint32_t, uint64_t>;

/// The sender's clock says exactly which of its messages it had in hand.
void find_cause(std::vector<traced_event>& events, traced_event& e,
                const std::map<actor_key, std::vector<uint32_t>>& taken) {
  if (e.via != nowhere) {
    e.cause = e.via;
    e.within = true;
    return;
  }
  if (e.sender_process == nowhere) return;
  auto by = taken.find({e.trace, e.sender_process, e.sender.packed()});
  if (by == taken.end()) return;
  auto after = std::ranges::partition_point(by->second, [&](uint32_t i) {
    return events[i].at_ns <= *e.sent_ns && events[i].lamport < e.lamport;
  });
  if (after == by->second.begin()) return;
  e.cause = *(after - 1);
  e.within = *e.sent_ns <= events[e.cause].end_ns();
}

void find_wait(const std::vector<traced_event>& events, traced_event& e) {
  e.from_process = e.via != nowhere ? events[e.via].process : e.sender_process;
  // Whoever passed it on may have been busy after it had left.
  e.left_ns = e.via != nowhere ? std::min(events[e.via].end_ns(), e.at_ns) : e.sent_ns;
  if (e.left_ns) e.waited_ns = std::max<int64_t>(0, e.at_ns - *e.left_ns);
}

/// For each event of a request, those that came before it: in its process, and its cause.
std::vector<std::vector<uint32_t>> followers_of(const timeline& t,
                                                const std::vector<uint32_t>& members,
                                                std::vector<uint32_t>& open) {
  std::map<uint32_t, uint32_t> place;  // of an event among the members
  std::map<uint32_t, std::vector<uint32_t>> of_process;
  for (uint32_t i = 0; i < members.size(); ++i) {
    place[members[i]] = i;
    of_process[t.events[members[i]].process].push_back(i);
  }
  std::vector<std::vector<uint32_t>> followers(members.size());
  open.assign(members.size(), 0);
  auto add = [&](uint32_t before, uint32_t after) {
    followers[before].push_back(after);
    ++open[after];
  };
  for (auto& [process, own] : of_process) {
    std::ranges::stable_sort(own, {}, [&](uint32_t i) { return t.events[members[i]].lamport; });
    for (size_t i = 1; i < own.size(); ++i) add(own[i - 1], own[i]);
  }
  for (uint32_t i = 0; i < members.size(); ++i) {
    const auto& e = t.events[members[i]];
    if (e.cause == nowhere || t.events[e.cause].process == e.process) continue;
    add(place.at(e.cause), i);
  }
  return followers;
}

/// The earliest of those whose causes are all told, again and again. Where records of a forged
/// file wait for each other in a circle, the earliest at all.
std::vector<uint32_t> causal_order(const timeline& t, const std::vector<uint32_t>& members) {
  std::vector<uint32_t> open, order;
  auto followers = followers_of(t, members, open);
  using item = std::pair<int64_t, uint32_t>;
  std::priority_queue<item, std::vector<item>, std::greater<>> ready;
  auto at = [&](uint32_t i) { return t.events[members[i]].at_ns; };
  std::vector<bool> told(members.size());
  for (uint32_t i = 0; i < members.size(); ++i)
    if (open[i] == 0) ready.push({at(i), i});
  uint32_t oldest = 0;  // members come by time
  while (order.size() < members.size()) {
    while (told[oldest]) ++oldest;
    uint32_t next = ready.empty() ? oldest : ready.top().second;
    if (!ready.empty()) ready.pop();
    if (told[next]) continue;
    told[next] = true;
    order.push_back(members[next]);
    for (uint32_t f : followers[next])
      if (open[f] > 0 && --open[f] == 0 && !told[f]) ready.push({at(f), f});
  }
  return order;
}

void look_for_contradictions(const timeline& t, traced_request& r) {
  for (size_t i = 1; i < r.events.size(); ++i) {
    const auto &before = t.events[r.events[i - 1]], &e = t.events[r.events[i]];
    // Threads of one process may count and look at the clock in different order.
    int64_t early = before.process != e.process ? before.at_ns - e.at_ns : 0;
    if (e.sent_ns && e.sender_process != e.process)
      early = std::max(early, *e.sent_ns - e.at_ns);  // taken before it was sent
    if (early <= 0) continue;
    ++r.contradictions;
    r.worst_ns = std::max(r.worst_ns, early);
  }
}

void look_at_hosts(const timeline& t, traced_request& r) {
  std::map<std::string, uint64_t> errors;
  for (uint32_t p : r.processes) {
    auto& worst = errors[t.from.processes[p].host];
    worst = std::max(worst, t.clocks[p].error_ns);
  }
  if (errors.size() < 2) return;
  std::vector<uint64_t> sorted;
  for (const auto& [host, e] : errors) sorted.push_back(e);
  std::ranges::sort(sorted, std::greater<>());
  r.error_ns = sorted[0] + sorted[1];  // between any two of them
}

}  // namespace

void find_causes(std::vector<traced_event>& events) {
  find_passed_on(events);
  std::map<actor_key, std::vector<uint32_t>> taken;
  for (uint32_t i = 0; i < events.size(); ++i)
    if (events[i].trace != 0)
      taken[{events[i].trace, events[i].process, events[i].receiver.packed()}].push_back(i);
  for (auto& [actor, own] : taken)
    std::ranges::stable_sort(own, {}, [&](uint32_t i) { return events[i].lamport; });
  for (auto& e : events) {
    if (e.trace != 0) find_cause(events, e, taken);
    find_wait(events, e);
  }
}

void order_request(const timeline& t, std::vector<uint32_t> members, traced_request& r) {
  r.events = causal_order(t, members);
  r.begin_ns = INT64_MAX;
  r.end_ns = INT64_MIN;
  for (uint32_t i : r.events) {
    const auto& e = t.events[i];
    r.begin_ns = std::min({r.begin_ns, e.at_ns, e.sent_ns.value_or(e.at_ns)});
    r.end_ns = std::max(r.end_ns, e.end_ns());
    if (std::ranges::find(r.processes, e.process) == r.processes.end())
      r.processes.push_back(e.process);
    r.submitted |= e.type == capnp::typeId<schema::Submit>();
    r.released |= e.type == capnp::typeId<schema::Release>();
    r.lost |= e.type == capnp::typeId<schema::Lost>();
    // A face begins by itself; everyone else was told something first.
    r.causeless += e.cause == nowhere && e.type != capnp::typeId<schema::Place>();
  }
  look_at_hosts(t, r);
  look_for_contradictions(t, r);
}

}  // namespace lethe::trace_detail
