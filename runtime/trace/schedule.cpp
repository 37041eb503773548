#include "runtime/trace/schedule.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/trace/trace_limits.hpp"
#include "schemas/messages.capnp.h"

namespace lethe {

namespace {

template <class Schema>
bool is(const traced_event& e, actor_kind taker) {
  return e.type == capnp::typeId<Schema>() && e.receiver.kind == taker;
}

/// Which of its messages a request's recording has.
struct seen_messages {
  const traced_event *place = nullptr, *placed = nullptr, *submit = nullptr, *release = nullptr;
  bool lost = false;
  uint32_t pieces = 0;
  std::optional<uint32_t> left_after;
};

seen_messages look_at(const timeline& t, const traced_request& r) {
  seen_messages seen;
  for (uint32_t i : r.events) {
    const auto& e = t.events[i];
    if (is<schema::Place>(e, actor_kind::scheduler)) seen.place = &e;
    if (is<schema::Placed>(e, actor_kind::face)) seen.placed = &e;
    if (is<schema::Submit>(e, actor_kind::engine)) seen.submit = &e;
    if (is<schema::Release>(e, actor_kind::engine)) seen.release = &e;
    seen.lost |= is<schema::Lost>(e, actor_kind::face);
    if (is<schema::Cancel>(e, actor_kind::scheduler)) seen.left_after = seen.pieces;
    seen.pieces += is<schema::Answer>(e, actor_kind::face);
  }
  return seen;
}

/// Nothing if it can't be run again; the schedule then counts it.
std::optional<scheduled_request> request_of(const traced_request& r, const seen_messages& seen,
                                            replay_schedule& into) {
  if (seen.lost) return ++into.lost, std::nullopt;
  if (!seen.place) return ++into.cut, std::nullopt;
  if (!seen.submit) return ++(seen.placed ? into.unplaced : into.cut), std::nullopt;
  scheduled_request asked{.id = r.id,
                          .asked_ns = seen.place->sent_ns.value_or(seen.place->at_ns),
                          .sealed_bytes = seen.submit->bytes,
                          .pieces = seen.pieces,
                          .left_after = seen.left_after,
                          .released = seen.release != nullptr};
  asked.asked_ns = std::min(asked.asked_ns, seen.place->at_ns);
  if (seen.release) asked.runs_ns = std::max<int64_t>(0, seen.release->at_ns - seen.submit->at_ns);
  return asked;
}

}  // namespace

result<replay_schedule> schedule_of(const timeline& t) {
  replay_schedule s;
  std::set<uint16_t> engines;
  for (const auto& r : t.requests) {
    auto seen = look_at(t, r);
    auto asked = request_of(r, seen, s);
    if (!asked) continue;
    engines.insert(seen.submit->receiver.index);
    s.requests.push_back(*asked);
  }
  if (s.requests.empty())
    return fail("the records hold no request whose beginning they tell of\n{}", left_out_text(s));
  s.engines.assign(engines.begin(), engines.end());
  std::ranges::stable_sort(s.requests, {}, &scheduled_request::asked_ns);
  int64_t begin = s.requests.front().asked_ns;
  for (auto& r : s.requests) r.asked_ns -= begin;
  s.messages = messages_of(t, s, s.engines, begin);
  if (s.messages.back().at_ns > limits::replay_ns_max)
    return fail("the records' requests span {} hours; at most 24 can be replayed",
                s.messages.back().at_ns / 3'600'000'000'000);
  if (s.engines.size() > limits::replay_engines_max)
    return fail("the records tell of {} engines; at most {} can be replayed", s.engines.size(),
                limits::replay_engines_max);
  s.pieces_recorded = std::ranges::any_of(
      t.from.processes, [](const traced_process& p) { return p.mode == trace_mode::all; });
  for (const auto& e : t.events) s.of_no_request += e.trace == 0;
  return s;
}

std::vector<scheduled_message> messages_of(const timeline& t, const replay_schedule& of,
                                           const std::vector<uint16_t>& engines, int64_t begin_ns) {
  std::set<uint64_t> ids;
  for (const auto& r : of.requests) ids.insert(r.id);
  std::map<taken_message, uint32_t> counts;
  std::vector<scheduled_message> all;
  for (const auto& e : t.events) {
    if (!ids.contains(e.trace)) continue;
    taken_message what{e.trace, e.type, e.receiver.kind};
    uint32_t number = counts[what]++;
    what.number = number;
    auto engine = std::ranges::lower_bound(engines, e.receiver.index);
    all.push_back(
        {.what = what, .index = uint16_t(engine - engines.begin()), .at_ns = e.at_ns - begin_ns});
  }
  return all;
}

}  // namespace lethe
