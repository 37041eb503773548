#include "actors/sim/stage.hpp"

namespace lethe::sim {

/// After every message.
void stage::check_step() {
  if (!to_scheduler) return;
  check_admission();
  check_drains();
  check_scaling();
  // Pages: after every turn of a step loop, in sim_core::turn.
  uint64_t arenas = count_arenas().alive - arenas_before_;
  uint64_t most = facts.cores.size() + 2 * requests_alive.size();
  if (arenas > most)
    facts.violated("{} arenas are alive; {} engines and {} requests may have {}", arenas,
                   facts.cores.size(), requests_alive.size(), most);
}

/// What was admitted has ended or is known, and no engine holds what is not known.
void stage::check_admission() {
  const auto& d = desk();
  const auto& t = d.total;
  uint64_t ended = t.served + t.refused + t.cancelled + t.failed;
  if (t.admitted != ended + d.requests())
    facts.violated("{} requests were admitted, {} ended, {} are known", t.admitted, ended,
                   d.requests());
  size_t held = 0;
  for (const auto& [id, e] : d.engines()) {
    held += e.held;
    if (e.held > e.capacity) facts.violated("engine {} holds more than it can", id);
  }
  if (held != d.requests())
    facts.violated("engines hold {} requests, {} are known", held, d.requests());
}

/// A drained engine that has nothing to finish leaves without being made to.
void stage::check_drains() {
  constexpr uint64_t patience_ms = 1000;
  uint64_t now = now_us() / 1000;
  for (const auto& [id, e] : known_fleet().engines()) {
    if (e.phase != schema::Phase::DRAINING) continue;
    auto at = desk().engines().find(id);
    bool busy = at != desk().engines().end() && at->second.held > 0;
    busy = busy || !requests_alive.empty();  // its last piece may wait, or its padding go on
    busy = busy || facts.cut.contains(e.place.host);  // the order is on its way, or its answer
    if (busy) idle_since_ms_[id] = now;
    uint64_t since = std::max(e.since, idle_since_ms_[id]);
    if (now > since + patience_ms)
      facts.violated("engine {} is drained, has no request, and stays", id);
  }
}

/// What is wanted stays between its bounds.
void stage::check_scaling() {
  auto rules = scaling();
  const auto& f = known_fleet();
  if (!rules.by_load() || f.leaving()) return;
  size_t wanted = f.wanted().size();
  if (wanted < rules.least || wanted > rules.most)
    facts.violated("{} engines are wanted; the file says {} to {}", wanted, rules.least,
                   rules.most);
}

/// What a failure's line says of the cluster.
std::string stage::state() const {
  const auto& f = known_fleet();
  std::string text = fmt::format(
      "{} engines wanted, {} open, {} requests alive, {} known, {} clients wait; engines",
      f.wanted().size(), facts.cores.size(), requests_alive.size(), desk().requests(),
      face_state().open());
  for (const auto& [id, e] : f.engines())
    text += fmt::format(" {}/{}:{}{}", id, e.epoch, int(e.phase), e.surplus ? "-" : "");
  if (face_state().open() > 0)
    text += fmt::format("; request {} has not ended", face_state().oldest());
  for (auto id : requests_alive) text += fmt::format("; actor {} runs", id);
  return text;
}

bool stage::empty() {
  return facts.cores.empty() && requests_alive.empty() && face_state().open() == 0 &&
         desk().requests() == 0 && known_fleet().engines().empty();
}

/// Nobody has a request: what is left belongs to engines.
void stage::check_arenas_are_zero() {
  uint64_t arenas = count_arenas().alive - arenas_before_;
  if (good() && arenas != facts.cores.size())
    facts.violated("{} arenas are alive with {} engines and no request", arenas,
                   facts.cores.size());
}

}  // namespace lethe::sim
