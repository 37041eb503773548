#include "runtime/cluster/fleet.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/check.hpp"

namespace lethe {

using schema::Phase;

namespace {

/// The others are for the directory to say, or from a newer engine.
bool is_its_own(Phase p) {
  return p == Phase::STARTING || p == Phase::LOADING || p == Phase::READY || p == Phase::DRAINING ||
         p == Phase::GONE;
}

/// On every host that has something of it, but for one where nothing runs any more.
void kill(const engine_instance& e, std::vector<fleet_order>& orders,
          const std::string& except = {}) {
  for (const auto& host : e.place.hosts())
    if (host != except)
      orders.push_back(
          {.kind = fleet_order::what::kill, .id = e.id, .epoch = e.epoch, .host = host});
}

}  // namespace

std::vector<std::string> engine_place::hosts() const {
  std::vector<std::string> all{host};
  for (const auto& name : ranks)
    if (std::ranges::find(all, name) == all.end()) all.push_back(name);
  return all;
}

bool engine_place::touches(const std::string& name) const {
  return host == name || std::ranges::find(ranks, name) != ranks.end();
}

bool engine_place::collides(const engine_place& other) const {
  auto host_of = [](const engine_place& p, size_t rank) {
    return p.ranks.empty() ? p.host : p.ranks[rank];
  };
  for (size_t i = 0; i < devices.size(); ++i)
    for (size_t j = 0; j < other.devices.size(); ++j)
      if (devices[i] == other.devices[j] && host_of(*this, i) == host_of(other, j)) return true;
  return false;
}

void fleet::enter(engine_instance& e, Phase phase, fleet_time now) {
  e.phase = phase;
  e.since = now;
}

void fleet::want(std::vector<engine_place> places, fleet_time now, haste of_surplus) {
  if (leaving_) return;
  wanted_ = std::move(places);
  assign(now, of_surplus);
  if (of_surplus == haste::none) return;  // the load says so, and nobody has looked
  for (auto& [id, e] : engines_) {
    if (e.surplus || e.phase != Phase::PARKED) continue;
    e.failures.clear();
    e.retry_at = now;
    enter(e, Phase::WAITING, now);
  }
}

/// Gives each place an engine and calls the rest surplus. Those that serve are kept first.
void fleet::assign(fleet_time now, haste of_surplus) {
  std::vector<engine_place> open = wanted_;
  std::vector<engine_instance*> all;
  for (auto& [id, e] : engines_) all.push_back(&e);
  auto rank = [](const engine_instance* e) {
    return e->phase == Phase::READY ? 0 : e->alive() ? 1 : 2;
  };
  std::ranges::stable_sort(all, {}, rank);
  for (auto* e : all) {
    bool going = e->phase == Phase::DRAINING || e->phase == Phase::GONE;
    auto place = going ? open.end() : std::ranges::find(open, e->place);
    bool was_wanted = !e->surplus;
    e->surplus = place == open.end();
    if (!e->surplus) open.erase(place);
    if (was_wanted) e->patient = e->surplus && of_surplus == haste::none;
  }
  for (auto& place : open) {
    check(next_id_ < UINT16_MAX);
    engine_instance fresh{.id = next_id_++, .place = std::move(place), .since = now};
    engines_.emplace(fresh.id, std::move(fresh));
  }
}

bool fleet::retire(uint16_t id, fleet_time now) {
  auto found = engines_.find(id);
  if (found == engines_.end() || found->second.surplus) return false;
  found->second.surplus = true;
  found->second.patient = false;
  wanted_.erase(std::ranges::find(wanted_, found->second.place));
  (void)now;
  return true;
}

void fleet::leave(fleet_time now) {
  leaving_ = true;
  wanted_.clear();
  assign(now, haste::drain_ms);
  for (auto& [id, e] : engines_) {
    if (e.patient) e.since = now;
    e.patient = false;
  }
}

void fleet::host_joined(const std::string& host) { hosts_[host] = presence::joined; }

void fleet::host_leaves(const std::string& host) { hosts_[host] = presence::leaving; }

bool fleet::is_idle(const std::string& host) const {
  return std::ranges::none_of(engines_, [&host](const auto& entry) {
    return entry.second.place.touches(host) && entry.second.alive();
  });
}

void fleet::host_lost(const std::string& host, fleet_time now, const std::string& why) {
  hosts_[host] = presence::absent;
  for (auto& [id, e] : engines_) {
    if (!e.place.touches(host)) continue;
    // The engine's own end may be heard of first; it is no fault of the engine.
    bool with_it = !e.failures.empty() && e.failures.back() + rules_.together_ms >= now &&
                   (e.phase == Phase::WAITING || e.phase == Phase::PARKED);
    if (with_it) e.failures.pop_back();
    if (!e.alive() && !with_it) continue;
    kill(e, ends_, host);
    e.reason = why;
    enter(e, e.phase == Phase::DRAINING && e.surplus ? Phase::GONE : Phase::WAITING, now);
    e.retry_at = now;
  }
}

/// A host that is not there counts more than one that leaves.
fleet::presence fleet::presence_of(const engine_place& place) const {
  auto all = presence::joined;
  for (const auto& name : place.hosts()) {
    auto known = hosts_.find(name);
    auto one = known == hosts_.end() ? presence::absent : known->second;
    if (one == presence::absent) return one;
    if (one == presence::leaving) all = one;
  }
  return all;
}

bool fleet::engine_said(uint16_t id, uint32_t epoch, Phase phase, fleet_time now) {
  auto found = engines_.find(id);
  if (found == engines_.end() || found->second.epoch != epoch) return false;
  engine_instance& e = found->second;
  if (!e.alive() || !is_its_own(phase)) return false;
  if (e.phase == Phase::DRAINING && phase != Phase::GONE) return true;
  if (phase == e.phase) return true;
  enter(e, phase, now);
  return true;
}

bool fleet::engine_ended(uint16_t id, uint32_t epoch, const std::string& reason, fleet_time now) {
  auto found = engines_.find(id);
  if (found == engines_.end() || found->second.epoch != epoch) return false;
  engine_instance& e = found->second;
  // Its ranks end when one is lost, but one that only stopped would keep its memory.
  if (e.alive()) kill(e, ends_, e.place.host);
  if (e.phase == Phase::DRAINING || e.phase == Phase::GONE || e.surplus)
    enter(e, Phase::GONE, now);
  else if (e.alive())
    fail(e, reason, now);
  return true;
}

/// Waits twice as long after each failure; after too many within the memory it is parked.
void fleet::fail(engine_instance& e, const std::string& reason, fleet_time now) {
  e.reason = reason;
  e.failures.push_back(now);
  while (e.failures.front() + rules_.memory_ms < now) e.failures.pop_front();
  if (e.failures.size() > rules_.restarts) return enter(e, Phase::PARKED, now);
  uint32_t doublings = std::min<uint32_t>(uint32_t(e.failures.size()) - 1, 20);
  uint64_t wait =
      std::min<uint64_t>(uint64_t{rules_.restart_ms} << doublings, rules_.restart_max_ms);
  enter(e, Phase::WAITING, now);
  e.retry_at = now + wait;
}

bool fleet::every_place_ready() const {
  size_t ready = 0;
  for (const auto& [id, e] : engines_) ready += !e.surplus && e.phase == Phase::READY;
  return ready >= wanted_.size();
}

/// Another one is on its device.
bool fleet::is_kept_out(const engine_instance& e) const {
  return std::ranges::any_of(engines_, [&e](const auto& entry) {
    const engine_instance& other = entry.second;
    return &other != &e && other.alive() && other.place.collides(e.place);
  });
}

bool fleet::keeps_out_a_wanted(const engine_instance& e) const {
  return std::ranges::any_of(engines_, [&e](const auto& entry) {
    const engine_instance& other = entry.second;
    return !other.surplus && other.phase == Phase::WAITING && other.place.collides(e.place);
  });
}

/// Nobody comes, goes or has failed: what waits, waits for a device or a host.
bool fleet::is_calm() const {
  return std::ranges::all_of(engines_, [this](const auto& entry) {
    const engine_instance& e = entry.second;
    if (e.surplus) return e.phase != Phase::DRAINING;
    if (e.phase != Phase::WAITING) return e.phase == Phase::READY;
    return is_kept_out(e) || presence_of(e.place) != presence::joined;
  });
}

bool fleet::settled() const { return every_place_ready() && engines_.size() == wanted_.size(); }

std::vector<fleet_order> fleet::due(fleet_time now) {
  std::erase_if(engines_, [](const auto& entry) {
    return entry.second.phase == Phase::GONE && entry.second.surplus;
  });
  auto orders = std::exchange(ends_, {});
  bool may_drain = every_place_ready(), may_make_room = is_calm();
  for (auto& [id, e] : engines_) {
    auto host = presence_of(e.place);
    if (e.phase == Phase::GONE) {  // its place is still wanted
      e.reason = "its host left";
      e.retry_at = now;
      enter(e, Phase::WAITING, now);
    }
    fleet_order order{.id = id, .epoch = e.epoch, .host = e.place.host};
    bool serves = e.phase == Phase::READY;
    bool late = (e.phase == Phase::DRAINING && !e.patient && now >= e.since + rules_.drain_ms) ||
                ((e.phase == Phase::STARTING || e.phase == Phase::LOADING) &&
                 now >= e.since + rules_.start_ms);
    if (late) {
      if (e.phase != Phase::DRAINING) e.reason = "it was not ready in time";
      kill(e, orders);
      e.since = now;  // the order is repeated if it is lost
    } else if (serves && (host == presence::leaving ||
                          (e.surplus && (may_drain || (may_make_room && keeps_out_a_wanted(e)))))) {
      may_make_room = false;
      order.kind = fleet_order::what::drain;
      enter(e, Phase::DRAINING, now);
      orders.push_back(order);
    } else if (e.surplus && !serves && e.phase != Phase::DRAINING) {
      if (e.alive()) kill(e, orders);
      enter(e, Phase::GONE, now);
    } else if (host == presence::leaving &&
               (e.phase == Phase::STARTING || e.phase == Phase::LOADING)) {
      kill(e, orders);
      enter(e, Phase::GONE, now);
    } else if (!e.surplus && e.phase == Phase::WAITING && host == presence::joined &&
               now >= e.retry_at && !is_kept_out(e)) {
      order.kind = fleet_order::what::start;
      order.epoch = ++e.epoch;
      if (e.epoch > 1) ++e.restarts;
      enter(e, Phase::STARTING, now);
      orders.push_back(order);
    }
  }
  return orders;
}

}  // namespace lethe
