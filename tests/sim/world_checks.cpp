#include "tests/sim/world.hpp"

namespace lethe::sim {

/// After every message.
void world::check_step() {
  if (!scheduler_) return;
  check_admission();
  check_drains();
  check_scaling();
  // Pages: after every turn of a step loop, in sim_core::turn.
  uint64_t arenas = count_arenas().alive - arenas_before_;
  uint64_t most = facts_.cores.size() + 2 * requests_alive_.size();
  if (arenas > most)
    facts_.violated("{} arenas are alive; {} engines and {} requests may have {}", arenas,
                    facts_.cores.size(), requests_alive_.size(), most);
}

/// What was admitted has ended or is known, and no engine holds what is not known.
void world::check_admission() {
  const auto& d = desk();
  const auto& t = d.total;
  uint64_t ended = t.served + t.refused + t.cancelled + t.failed;
  if (t.admitted != ended + d.requests())
    facts_.violated("{} requests were admitted, {} ended, {} are known", t.admitted, ended,
                    d.requests());
  size_t held = 0;
  for (const auto& [id, e] : d.engines()) {
    held += e.held;
    if (e.held > e.capacity) facts_.violated("engine {} holds more than it can", id);
  }
  if (held != d.requests())
    facts_.violated("engines hold {} requests, {} are known", held, d.requests());
}

/// A drained engine that has nothing to finish leaves without being made to.
void world::check_drains() {
  constexpr uint64_t patience_ms = 1000;
  uint64_t now = now_us() / 1000;
  for (const auto& [id, e] : known_fleet().engines()) {
    if (e.phase != schema::Phase::DRAINING) continue;
    auto at = desk().engines().find(id);
    bool busy = at != desk().engines().end() && at->second.held > 0;
    if (busy) idle_since_ms_[id] = now;
    uint64_t since = std::max(e.since, idle_since_ms_[id]);
    if (now > since + patience_ms)
      facts_.violated("engine {} is drained, has no request, and stays", id);
  }
}

/// What is wanted stays between its bounds.
void world::check_scaling() {
  auto rules = scaling();
  const auto& f = known_fleet();
  if (!rules.by_load() || f.leaving()) return;
  size_t wanted = f.wanted().size();
  if (wanted < rules.least || wanted > rules.most)
    facts_.violated("{} engines are wanted; the file says {} to {}", wanted, rules.least,
                    rules.most);
}

bool world::converged() {
  const auto& f = known_fleet();
  bool all_up = true;
  for (const auto& h : hosts_) all_up = all_up && h.up;
  if (!all_up || !f.settled() || desk().requests() > 0 || !requests_alive_.empty()) return false;
  if (facts_.cores.size() != f.wanted().size()) return false;
  if (living_cores().size() != facts_.cores.size()) return false;  // lost, and not yet noticed
  if (desk().engines().size() != f.wanted().size()) return false;
  for (const auto& [id, e] : desk().engines()) {
    auto known = f.engines().find(id);
    if (known == f.engines().end() || known->second.epoch != e.epoch || e.draining) return false;
  }
  return true;
}

/// What a failure's line says of the cluster.
std::string world::state() const {
  const auto& f = known_fleet();
  std::string text = fmt::format(
      "{} engines wanted, {} open, {} requests alive, {} known, {} clients wait; engines",
      f.wanted().size(), facts_.cores.size(), requests_alive_.size(), desk().requests(),
      face_state().open());
  for (const auto& [id, e] : f.engines())
    text += fmt::format(" {}/{}:{}{}", id, e.epoch, int(e.phase), e.surplus ? "-" : "");
  if (face_state().open() > 0)
    text += fmt::format("; request {} has not ended", face_state().oldest());
  for (auto id : requests_alive_) text += fmt::format("; actor {} runs", id);
  for (const auto& h : hosts_) text += fmt::format(" {}{}", h.name, h.up ? "" : " is down");
  return text;
}

bool world::empty() {
  return facts_.cores.empty() && requests_alive_.empty() && face_state().open() == 0 &&
         desk().requests() == 0 && known_fleet().engines().empty();
}

/// Nobody has a request: what is left belongs to engines.
void world::check_arenas_are_zero() {
  uint64_t arenas = count_arenas().alive - arenas_before_;
  if (good() && arenas != facts_.cores.size())
    facts_.violated("{} arenas are alive with {} engines and no request", arenas,
                    facts_.cores.size());
}

}  // namespace lethe::sim
