#include "tests/sim/world.hpp"

namespace lethe::sim {

/// So low that a full engine asks for another, and one request on each lets one go.
std::string world::draw_scaling() {
  auto& chance = facts_.chance;
  uint64_t least = chance.between(1, engines_max_ / 2);
  return fmt::format(
      "[scaling]\nleast = {}\nmost = {}\nqueued = {}\npages = {}\npages_low = {}\nhold_ms = {}\n"
      "idle_ms = {}\n",
      least, chance.between(least + 1, engines_max_), chance.between(1, queued_max_),
      chance.between(85, 100), chance.between(60, 80), chance.between(100, 600),
      chance.between(100, 900));
}

/// Requests that the engines can take, together.
uint64_t world::capacity() const {
  uint64_t all = 0;
  for (const auto& [id, e] : on_.desk().engines())
    if (!e.draining) all += e.capacity;
  return all;
}

/// Requests that run for long, so that engines leave with some of them in hand.
void world::fill_up(uint64_t requests) {
  auto& chance = facts_.chance;
  for (auto* core : on_.living_cores()) core->step_us = 200'000;
  if (on_.face_state().open() >= requests) return;
  for (uint64_t i = on_.face_state().open(); i < requests; ++i) {
    wish w{.max_tokens = uint32_t(chance.between(16, 24))};
    for (uint64_t n = chance.between(1, 4); n > 0; --n)
      w.prompt.push_back(chance.one_of(on_.words.plain()));
    on_.face_state().wishes.push_back(std::move(w));
  }
  caf::anon_send(on_.face, stirred::value);
}

/// Without any fault: load brings engines, its end takes them away, and no request is lost by that.
void world::breathe() {
  auto rules = on_.scaling();
  if (!rules.by_load()) return;
  auto size = [this] {
    return on_.known_fleet().settled() ? on_.known_fleet().wanted().size() : 0;
  };
  auto before = facts_.endings;
  constexpr uint64_t few = 4;  // run on one engine, and leave some of its pages
  until("a full cluster does not grow to its most", 60'000 + 10'000 * rules.most, [&] {
    fill_up(capacity());
    return size() == rules.most;
  });
  until("a cluster with little to do does not shrink to its least", 30'000 * rules.most, [&] {
    fill_up(std::min<uint64_t>(rules.most, few));
    if (facts_.planted == bug::killed_draining)
      for (const auto& [id, e] : on_.known_fleet().engines())
        for (auto& h : hosts_)
          if (e.phase == schema::Phase::DRAINING && h.name == e.place.host) h.house->kill(id);
    return size() == rules.least;
  });
  for (auto* core : on_.living_cores()) core->step_us = 500;
  until("the clients' requests do not end", 60'000,
        [this] { return on_.face_state().open() == 0; });
  for (auto how : {ending::lost, ending::failed, ending::refused})
    if (good() && facts_.endings[size_t(how)] != before[size_t(how)])
      facts_.violated("scaling by load left {} requests {}",
                      facts_.endings[size_t(how)] - before[size_t(how)], ending_names[size_t(how)]);
}

}  // namespace lethe::sim
