#include "runtime/trace/stuck.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/limits.hpp"
#include "runtime/trace/trace_stats.hpp"
#include "schemas/messages.capnp.h"

namespace lethe {

namespace {

bool is_of_engine(const actor_tag& a) {
  return a.kind == actor_kind::engine || a.kind == actor_kind::request;
}

/// With its process, also where that was silent.
awaited located(const timeline& t, const actor_tag& who, uint32_t process) {
  return {who, process == nowhere ? t.silent_process(who.process) : process};
}

/// Engines of processes that did not answer; where nobody told of one, the process.
std::vector<awaited> silent_engines(const timeline& t) {
  std::vector<awaited> all;
  for (uint32_t p : t.gaps.silent) {
    size_t before = all.size();
    std::set<uint16_t> known;
    for (const auto& e : t.events)
      if (e.sender.kind == actor_kind::engine && t.silent_process(e.sender.process) == p &&
          known.insert(e.sender.index).second)
        all.push_back({e.sender, p});
    if (all.size() == before) all.push_back({{}, p});
  }
  return all;
}

/// Where the scheduler passed a message on to: no record of it says so.
std::vector<awaited> engine_of(const timeline& t, const traced_request& r) {
  for (uint32_t i : r.events) {
    const auto& e = t.events[i];
    if (is_of_engine(e.receiver)) return {located(t, e.receiver, e.process)};
    if (is_of_engine(e.sender)) return {located(t, e.sender, e.sender_process)};
  }
  return silent_engines(t);
}

bool answered(const timeline& t, const awaited& who) {
  return who.process != nowhere && t.from.processes[who.process].answered();
}

/// A client has as many pieces as may be sent before it takes any.
bool takes_no_more(const timeline& t, const traced_request& r) {
  constexpr uint32_t credit_least = limits::answer_window / 4;
  uint32_t sent = 0, credited = 0;
  for (uint32_t i : r.events) {
    sent += t.events[i].type == capnp::typeId<schema::Answer>();
    credited += t.events[i].type == capnp::typeId<schema::Credit>() ? credit_least : 0;
  }
  return sent >= credited + limits::answer_window;
}

/// Whoever took the last message has it, unless that only passed it on or waits for the next.
std::vector<awaited> awaited_after(const timeline& t, const traced_request& r,
                                   const traced_event& last) {
  if (last.type == capnp::typeId<schema::Answer>()) {
    auto sender = located(t, last.sender, last.sender_process);
    if (!answered(t, sender) || !takes_no_more(t, r)) return {sender};
  }
  bool passed_on =
      last.type == capnp::typeId<schema::Submit>() || last.type == capnp::typeId<schema::Cancel>();
  if (passed_on && last.receiver.kind == actor_kind::scheduler) return engine_of(t, r);
  return {located(t, last.receiver, last.process)};
}

}  // namespace

std::vector<stuck_request> stuck_requests(const timeline& t, int64_t least_ns) {
  std::vector<stuck_request> stuck;
  for (const auto& r : t.requests) {
    if (!r.submitted || r.released || r.lost) continue;
    // In causal order: the latest by time may be of a clock that errs.
    stuck_request s{&r, std::max<int64_t>(0, t.now_ns - r.end_ns), r.events.back(), {}};
    if (s.silent_ns < least_ns) continue;
    s.waits_for = awaited_after(t, r, t.events[s.last]);
    stuck.push_back(std::move(s));
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
