#include "tests/sim/world.hpp"

#include <algorithm>

namespace lethe::sim {

namespace {

/// One run in three each: as pieces come, in one size, and on a tick.
answer_shape shape_for(uint64_t seed) {
  if (seed % 3 == 0) return {};
  return {.chunk_bytes = 256, .tick_ms = seed % 3 == 1 ? 0u : 5u};
}

}  // namespace

world::world(const run_options& options, std::shared_ptr<const served_model> model)
    : options_(options),
      on_({.seed = options.seed, .planted = options.planted, .shape = shape_for(options.seed)},
          std::move(model)) {}

world::~world() = default;

void world::begin() {
  auto& chance = facts_.chance;
  hosts_max_ = uint32_t(chance.between(1, 4));
  if (chance.once_in(12)) engines_max_ = uint32_t(chance.between(5, 16));
  page_tokens_ = uint32_t(1) << chance.between(2, 4);
  running_max_ = uint32_t(chance.between(4, 8));
  queue_max_ = uint32_t(chance.between(0, 16));
  size_ = {.pages = uint32_t(context_ / 2 + chance.between(0, 24)),
           .depth = uint32_t(chance.between(1, 3))};
  auto config = draw_config(true);
  on_.begin(config.get());
  for (uint32_t i = 0; i < hosts_max_; ++i) {
    hosts_.push_back({.name = fmt::format("h{}", i)});
    hosts_.back().rejoins_ms = chance.below(300);
  }
}

/// One message of one actor, chosen by chance; the checks follow it. Where nobody has anything to
/// do, time goes on to the next who has.
void world::step() {
  auto& chance = facts_.chance;
  for (auto& h : hosts_) {
    if (h.out) look_at_link(h);
    if (!h.up && !h.out && on_.now_us() / 1000 >= h.rejoins_ms) join(h);
  }
  if (chance.once_in(4)) on_.advance_us(chance.below(300));
  if (pick()) {
    run_first();
  } else if (!on_.jobs->jobs.empty()) {
    on_.advance_us(500);
  } else if (!on_.jobs->trigger_timeout()) {
    facts_.violated("nobody has anything to do, ever");
  }
  on_.check_step();
}

/// Puts one of the ready actors first. Now and then one is held back, as by a network or a busy
/// processor; what others send it meanwhile queues up behind.
bool world::pick() {
  auto& chance = facts_.chance;
  auto& jobs = on_.jobs->jobs;
  std::erase_if(held_, [now = on_.now_us()](const auto& h) { return h.until_us <= now; });
  auto is_held = [&](caf::resumable* j) {
    return std::ranges::find(held_, j, &held_back::job) != held_.end();
  };
  std::vector<size_t> free;
  for (size_t i = 0; i < jobs.size(); ++i)
    if (!is_held(jobs[i])) free.push_back(i);
  if (free.empty()) return false;
  size_t chosen = chance.one_of(free);
  if (chance.once_in(24)) {
    uint64_t most = chance.once_in(8) ? 60'000 : 3'000;
    held_.push_back({jobs[chosen], on_.now_us() + chance.between(50, most)});
    return pick();
  }
  std::rotate(jobs.begin(), jobs.begin() + ptrdiff_t(chosen), jobs.end());
  return true;
}

void world::run_first() {
  auto& who = on_.first();
  const caf::strong_actor_ptr alive(who.ctrl());
  links_.sieve(who);
  describe(who);
  on_.run_first();
  links_.took(who);
  links_.settle_requests_of(who.id(), on_.jobs->jobs);
  ++report_.steps;
  report_.engines = std::max(report_.engines, uint32_t(facts_.cores.size()));
}

/// Counts the message that comes next, and prints it.
void world::describe(caf::scheduled_actor& who) {
  auto* m = who.peek_at_next_mailbox_element();
  if (m == nullptr || m->content().size() == 0) return;
  auto type = m->content().type(0);
  bool own = m->content().match_elements<tick>() || m->content().match_elements<stirred>();
  if (!own) ++report_.messages;
  for (uint64_t word : {uint64_t(who.id()), uint64_t(type.first), on_.now_us()})
    report_.digest = (report_.digest ^ word) * 0x100000001b3;
  if (!options_.trace) return;
  auto name = own ? m->content().stringify(0) : on_.sys->types().portable_name(type);
  fmt::print("{:10} us  {} {} <- {} from {}\n", on_.now_us(), who.name(), who.id(), name,
             m->sender ? m->sender->id() : 0);
}

run_report world::run() {
  begin();
  if (good()) storm();
  if (good()) calm();
  if (good()) breathe();
  if (good()) probe();
  if (good()) down();
  if (good()) end_actors();
  report_.violation = facts_.violation;
  report_.virtual_ms = on_.now_us() / 1000;
  report_.faults = facts_.faults;
  report_.endings = facts_.endings;
  return report_;
}

/// No new faults: every request ends, and what runs becomes what is wanted.
void world::calm() {
  facts_.stormy = false;
  mend_links();
  facts_.throw_in.clear();
  for (auto* core : on_.living_cores()) {
    core->step_us = 500;
    core->ranks->fail_next = false;
  }
  for (auto& h : hosts_) h.rejoins_ms = 0;
  until("the clients' requests do not end", 60'000,
        [this] { return on_.face_state().open() == 0; });
  until("the cluster does not become what its file says", 60'000, [this] { return converged(); });
  on_.check_arenas_are_zero();
}

/// After all that, it serves.
void world::probe() {
  auto before = facts_.endings[size_t(ending::served)];
  wish plain{.prompt = {on_.words.plain()[1], on_.words.plain()[2]}, .max_tokens = 4};
  on_.face_state().wishes.push_back(plain);
  caf::anon_send(on_.face, stirred::value);
  until("the last request does not end", 10'000, [&] { return on_.face_state().open() == 0; });
  if (good() && facts_.endings[size_t(ending::served)] != before + 1)
    facts_.violated("a cluster that has what its file says does not serve");
}

void world::down() {
  if (facts_.chance.once_in(2)) ask(facts_.chance.below(12));
  auto how = facts_.chance.once_in(2) ? schema::Down::NOW : schema::Down::DRAIN;
  for (uint64_t steps = facts_.chance.below(400); good() && steps > 0; --steps) step();
  on_.order([how](schema::ControlAsk::Builder b) { b.setDown(how); });
  until("the cluster does not go down", 30'000, [this] { return on_.told_down() && on_.empty(); });
  on_.check_arenas_are_zero();
}

void world::end_actors() {
  report_.requests = on_.face_state().asked();
  std::vector<supervisor_actor> supervisors;
  for (auto& h : hosts_) {
    if (h.up) supervisors.push_back(h.supervisor);
    h.supervisor = nullptr;
  }
  on_.end(std::move(supervisors));
}

bool world::converged() {
  const auto& f = on_.known_fleet();
  bool all_up = true;
  for (const auto& h : hosts_) all_up = all_up && h.up;
  if (!all_up || !f.settled() || on_.desk().requests() > 0 || !on_.requests_alive.empty())
    return false;
  if (facts_.cores.size() != f.wanted().size()) return false;
  if (on_.living_cores().size() != facts_.cores.size()) return false;  // lost, and not yet noticed
  if (on_.desk().engines().size() != f.wanted().size()) return false;
  for (const auto& [id, e] : on_.desk().engines()) {
    auto known = f.engines().find(id);
    if (known == f.engines().end() || known->second.epoch != e.epoch || e.draining) return false;
  }
  return true;
}

std::string world::state() const {
  std::string text = on_.state();
  for (const auto& h : hosts_) text += fmt::format(" {}{}", h.name, h.up ? "" : " is down");
  return text;
}

}  // namespace lethe::sim
