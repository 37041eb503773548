#include "tests/places.hpp"
#include "tests/sim/world.hpp"

namespace lethe::sim {

namespace {

constexpr uint64_t messages_least = 2000;
constexpr uint32_t faults_least = 3;

uint32_t sum(const auto& counts) {
  uint32_t all = 0;
  for (uint32_t n : counts) all += n;
  return all;
}

}  // namespace

/// A file for the hosts of this run; a later one asks for something else.
cluster_config world::draw_config(bool first) {
  auto& chance = facts_.chance;
  std::string toml = fmt::format(
      "name = \"sim\"\nprofile = \"lab\"\n[model]\npath = \"{}/models/tiny\"\ncontext = {}\n",
      places::source, context_);
  for (uint32_t i = 0; i < hosts_max_; ++i)
    toml += fmt::format("[[hosts]]\nname = \"h{}\"\nport = {}\ncores = {}\n", i, 7000 + i,
                        engines_max_);
  toml += fmt::format("[engines]\ncount = {}\nthreads = 1\nplacement = \"{}\"\n",
                      chance.between(1, engines_max_ - 1),
                      first || chance.once_in(2) ? "spread" : "packed");
  std::string scaled = chance.once_in(2) ? draw_scaling() : "";
  uint64_t queue = first ? queue_max_ : chance.between(0, 16);
  if (!scaled.empty()) queue = queued_max_ + chance.between(2, 8);
  toml += fmt::format(
      "[batching]\npage_tokens = {}\nstep_tokens = {}\nchunk_tokens = {}\nrunning = {}\nqueue = "
      "{}\n",
      page_tokens_, chance.between(8, 48), chance.between(4, 32), running_max_, queue);
  toml += scaled;
  toml += "[health]\nrestart_ms = 20\nrestart_max_ms = 500\nrestarts = 1000\ndrain_ms = 3000\n";
  auto config = cluster_config::parse(toml, "sim.toml");
  for (const auto& problem : config.problems()) facts_.violated("config: {}", problem);
  return config;
}

void world::join(host& h) {
  h.house = std::make_shared<sim_house>(*on_.sys, facts_, on_.trace.get(), size_);
  h.house->moved_in = [this, &h](const caf::actor& who) { links_.settle(who, h.name); };
  h.supervisor = on_.join(h.name, h.house);
  links_.settle(caf::actor_cast<caf::actor>(h.supervisor), h.name);
  h.up = true;
  // With its supervisor goes the whole host, and comes back later.
  h.supervisor->attach_functor([this, &h, house = h.house] {
    house->die();
    h.up = false;
    h.rejoins_ms = on_.now_us() / 1000 + (facts_.stormy ? facts_.chance.between(20, 1500) : 0);
  });
}

void world::kill(host& h) {
  facts_.happened(fault::host_killed);
  h.house->die();
  caf::anon_send_exit(h.supervisor, caf::exit_reason::kill);
}

void world::ask(uint64_t requests) {
  for (; requests > 0; --requests)
    on_.face_state().wishes.push_back(draw_wish(facts_.chance, on_.words, context_));
  caf::anon_send(on_.face, stirred::value);
}

void world::one_fault() {
  auto& chance = facts_.chance;
  auto& h = chance.one_of(hosts_);
  auto cores = on_.living_cores();
  switch (chance.below(9)) {
    case 7:
    case 8:
      if (h.up && !h.out) cut_off(h);
      return;
    case 0: {
      auto running = h.up ? h.house->running() : std::vector<uint16_t>();
      if (running.empty()) return;
      facts_.happened(fault::engine_killed);
      return h.house->kill(chance.one_of(running));
    }
    case 1:
      if (h.up) kill(h);
      return;
    case 2:
      if (cores.empty()) return;
      chance.one_of(cores)->ranks->fail_next = true;
      return facts_.happened(fault::ranks_lost);
    case 3:
      if (cores.empty()) return;
      chance.one_of(cores)->step_us = chance.between(5'000, 200'000);
      return facts_.happened(fault::engine_slow);
    case 4:
      facts_.throw_in = "engine";
      return;
    case 5:
      facts_.throw_in = "request";
      return;
    default:
      facts_.throw_in = "supervisor";
      return;
  }
}

void world::do_something() {
  auto& chance = facts_.chance;
  switch (chance.below(10)) {
    case 0:
    case 1: {
      uint16_t engines = uint16_t(chance.between(1, engines_max_));
      return on_.order([=](schema::ControlAsk::Builder b) { b.setScale(engines); });
    }
    case 2: {
      std::vector<uint16_t> ids;
      for (const auto& [id, e] : on_.known_fleet().engines()) ids.push_back(id);
      if (ids.empty()) return;
      uint16_t id = chance.one_of(ids);
      return on_.order([=](schema::ControlAsk::Builder b) { b.setDrain(id); });
    }
    case 3: {
      auto next = draw_config(false);
      return on_.order([&](schema::ControlAsk::Builder b) { b.initApply().setConfig(next.get()); });
    }
    case 4:
      return ask(chance.between(10, 40));  // more than there is room for
    case 5:
      return ask(chance.between(1, 6));
    default:
      return one_fault();
  }
}

void world::storm() {
  auto& chance = facts_.chance;
  facts_.stormy = true;
  uint64_t next = 0, deadline = on_.now_us() + 600'000'000;
  while (good() && (report_.messages < messages_least || sum(facts_.faults) < faults_least)) {
    if (report_.steps >= next) {
      if (on_.face_state().open() < 6) ask(chance.between(2, 8));
      if (report_.steps > 200) do_something();
      next = report_.steps + chance.between(20, 400);
    }
    step();
    if (on_.now_us() > deadline) facts_.violated("nothing much happens in ten minutes");
  }
}

}  // namespace lethe::sim
