#include "runtime/cluster/load_scaling.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lethe {

scaling_rules scaling_rules::of(schema::Config::Reader c) {
  auto s = c.getScaling();
  uint16_t least = s.getLeast() ? s.getLeast() : c.getEngines().getCount();
  return {.least = least,
          .most = s.getMost(),
          .queued = s.getQueued(),
          .queued_low = s.getQueuedLow(),
          .pages = s.getPages(),
          .pages_low = s.getPagesLow(),
          .hold_ms = s.getHoldMs(),
          .idle_ms = s.getIdleMs()};
}

uint16_t scaling_rules::bound(uint16_t engines) const {
  return std::max(least, std::min(engines, most));
}

void load_scaling::change(const scaling_rules& rules) {
  rules_ = rules;
  more_since_.reset();
  fewer_since_.reset();
}

bool load_scaling::asks_more(const cluster_load& load) const {
  return load.queued >= uint64_t{rules_.queued} * load.engines ||
         (load.pages > 0 && load.reserved * 100 >= load.pages * rules_.pages);
}

/// Judged as if one were gone already, so that its going never asks for its return.
bool load_scaling::asks_fewer(const cluster_load& load) const {
  uint64_t others = load.engines - 1u;
  return load.queued <= rules_.queued_low * others &&
         load.reserved * 100 * load.engines <= load.pages * rules_.pages_low * others;
}

uint16_t load_scaling::decide(uint16_t wanted, uint16_t next, const std::string& seen,
                              fleet_time now) {
  more_since_.reset();
  fewer_since_.reset();
  changed_ = fmt::format("{} -> {}: {}", wanted, next, seen);
  changed_at_ = now;
  now_ = "changing";
  return next;
}

std::string load_scaling::changed_text(fleet_time now) const {
  if (changed_.empty()) return {};
  return fmt::format("{} s ago {}", (now - changed_at_) / 1000, changed_);
}

namespace {

std::string seen_text(const cluster_load& load) {
  return fmt::format("{:.1f} requests wait per engine, {} % of pages are reserved",
                     double(load.queued) / load.engines,
                     load.pages ? load.reserved * 100 / load.pages : 0);
}

/// Since when something is so; how long it still has to be.
uint64_t left_of(std::optional<fleet_time>& since, bool is_so, uint32_t hold_ms, fleet_time now) {
  if (!is_so) since.reset();
  if (is_so && !since) since = now;
  uint64_t passed = since ? now - *since : 0;
  return hold_ms - std::min<uint64_t>(hold_ms, passed);
}

}  // namespace

uint16_t load_scaling::look(const cluster_load& load, uint16_t wanted, fleet_time now) {
  if (uint16_t inside = rules_.bound(wanted); inside != wanted)
    return decide(wanted, inside, "the bounds are others", now);
  if (load.engines == 0 || load.engines != wanted) {
    more_since_.reset();
    fewer_since_.reset();
    now_ = fmt::format("{} of {} engines are ready", load.engines, wanted);
    return wanted;
  }
  bool more = asks_more(load);
  bool fewer = !more && wanted > rules_.least && load.leaving == 0 && asks_fewer(load);
  uint64_t more_in = left_of(more_since_, more, rules_.hold_ms, now);
  uint64_t fewer_in = left_of(fewer_since_, fewer, rules_.idle_ms, now);
  std::string seen = seen_text(load);
  bool room = wanted + load.leaving < rules_.most;
  if (more && room && more_in == 0) return decide(wanted, wanted + 1, seen, now);
  if (fewer && fewer_in == 0) return decide(wanted, wanted - 1, seen, now);
  std::string verdict = more && wanted == rules_.most ? "more is asked than scaling.most allows"
                        : more && !room               ? "one more when others have left"
                        : more                        ? fmt::format("one more in {} ms", more_in)
                        : fewer                       ? fmt::format("one fewer in {} ms", fewer_in)
                                                      : "no change";
  now_ = verdict + "; " + seen;
  return wanted;
}

}  // namespace lethe
