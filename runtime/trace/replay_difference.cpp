#include <algorithm>
#include <map>
#include <set>

#include "runtime/trace/message_names.hpp"
#include "runtime/trace/schedule.hpp"
#include "runtime/trace/trace_text.hpp"
#include "schemas/messages.capnp.h"

namespace lethe {

namespace {

constexpr size_t shown_most = 5;

/// Those that must be moved so that the rest ascends; as few as can be.
std::set<size_t> out_of_order(const std::vector<size_t>& places) {
  std::vector<size_t> ends, before(places.size());  // ends[n]: the best end of a run of n + 1
  for (size_t i = 0; i < places.size(); ++i) {
    auto at = std::ranges::lower_bound(ends, places[i], {}, [&](size_t e) { return places[e]; });
    before[i] = at == ends.begin() ? SIZE_MAX : *(at - 1);
    if (at == ends.end())
      ends.push_back(i);
    else
      *at = i;
  }
  std::set<size_t> moved;
  for (size_t i = 0; i < places.size(); ++i) moved.insert(i);
  for (size_t i = ends.empty() ? SIZE_MAX : ends.back(); i != SIZE_MAX; i = before[i])
    moved.erase(i);
  return moved;
}

using replayed_places = std::map<taken_message, std::pair<size_t, const scheduled_message*>>;

/// Each actor took its messages one after the other.
void compare_order(const replay_schedule& recorded, const replayed_places& replayed,
                   replay_difference& d) {
  using actor = std::tuple<actor_kind, uint16_t, uint64_t>;
  std::map<actor, std::vector<const scheduled_message*>> by_actor;
  for (const auto& m : recorded.messages) {
    bool own = m.what.taker == actor_kind::request;
    if (replayed.contains(m.what))
      by_actor[{m.what.taker, m.index, own ? m.what.request : 0}].push_back(&m);
  }
  for (const auto& [who, took] : by_actor) {
    std::vector<size_t> places;
    for (const auto* m : took) places.push_back(replayed.at(m->what).first);
    auto moved = out_of_order(places);
    for (size_t i : moved) d.reordered.push_back(*took[i]);
    d.same += took.size() - moved.size();
  }
  std::ranges::stable_sort(d.reordered, {}, &scheduled_message::at_ns);
}

std::string one_text(const replay_schedule& of, const scheduled_message& m) {
  std::string who = name_of(m.what.taker);
  bool many = m.what.taker == actor_kind::engine || m.what.taker == actor_kind::request;
  if (many && m.index < of.engines.size()) who += fmt::format(" {}", of.engines[m.index]);
  return fmt::format("  {} {} of {:016x} to {} at {}\n", message_name(m.what.type),
                     m.what.number + 1, m.what.request, who, time_text(m.at_ns));
}

void add_messages(std::string& out, const replay_schedule& of, const char* what,
                  const std::vector<scheduled_message>& all) {
  out += fmt::format("{:<14} {}\n", what, all.size());
  for (size_t i = 0; i < std::min(all.size(), shown_most); ++i) out += one_text(of, all[i]);
  if (all.size() > shown_most) out += fmt::format("  and {} more\n", all.size() - shown_most);
}

}  // namespace

replay_difference compare(const replay_schedule& recorded,
                          const std::vector<scheduled_message>& replayed) {
  replay_difference d;
  std::set<uint64_t> open;  // what they did after the records were gathered is not in them
  for (const auto& r : recorded.requests)
    if (!r.released) open.insert(r.id);
  replayed_places places;
  for (size_t i = 0; i < replayed.size(); ++i) places[replayed[i].what] = {i, &replayed[i]};
  std::set<taken_message> known;
  for (const auto& m : recorded.messages) {
    known.insert(m.what);
    auto found = places.find(m.what);
    d.pieces_recorded += is_piece(m.what.type);
    if (found == places.end()) {
      if (!is_piece(m.what.type)) d.not_replayed.push_back(m);
      continue;
    }
    const auto& again = *found->second.second;
    int64_t late = again.at_ns - m.at_ns;
    d.late += late > replay_difference::late_least_ns;
    d.latest_ns = std::max(d.latest_ns, late);
    bool placed = m.what.type == capnp::typeId<schema::Submit>() &&
                  m.what.taker == actor_kind::engine && again.index != m.index;
    if (placed) d.elsewhere.push_back(m.what.request);
  }
  for (const auto& m : replayed) {
    bool piece = is_piece(m.what.type);
    d.pieces_replayed += piece;
    if (!known.contains(m.what) && !piece && !open.contains(m.what.request))
      d.not_recorded.push_back(m);
  }
  compare_order(recorded, places, d);
  return d;
}

bool is_piece(uint64_t type) {
  return type == capnp::typeId<schema::Answer>() || type == capnp::typeId<schema::Credit>();
}

std::string difference_text(const replay_schedule& recorded, const replay_difference& d) {
  std::string out = fmt::format("{:<14} {}\n", "as recorded", d.same);
  add_messages(out, recorded, "other order", d.reordered);
  add_messages(out, recorded, "not replayed", d.not_replayed);
  add_messages(out, recorded, "not recorded", d.not_recorded);
  out += fmt::format("{:<14} {}\n", "other engine", d.elsewhere.size());
  for (size_t i = 0; i < std::min(d.elsewhere.size(), shown_most); ++i)
    out += fmt::format("  request {:016x}\n", d.elsewhere[i]);
  if (recorded.pieces_recorded && d.pieces_recorded != d.pieces_replayed)
    out += fmt::format("{:<14} {} recorded, {} replayed: how many tokens one holds is a race\n",
                       "pieces", d.pieces_recorded, d.pieces_replayed);
  if (d.late > 0)
    out += fmt::format("{:<14} {}, the latest by {}\n", "later", d.late, time_text(d.latest_ns));
  return out;
}

std::string left_out_text(const replay_schedule& s) {
  std::string out;
  auto say = [&out](uint32_t n, const char* why) {
    if (n > 0) out += fmt::format("left out: {} request{} {}\n", n, n == 1 ? "" : "s", why);
  };
  say(s.unplaced, "turned away, or left before anything was sealed");
  say(s.lost, "whose engine was lost");
  say(s.cut, "whose beginning is not in the records");
  return out;
}

}  // namespace lethe
