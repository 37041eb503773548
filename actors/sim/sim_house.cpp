#include "actors/sim/sim_house.hpp"

#include "actors/sim/faulty_front.hpp"

namespace lethe::sim {

caf::behavior alarm(caf::event_based_actor* self, uint64_t after_us, std::function<void()> then) {
  self->delayed_send(self, std::chrono::microseconds(after_us), tick::value);
  return {[self, then = std::move(then)](tick) {
    then();
    self->quit();
  }};
}

namespace {

engine_config config_of(schema::EngineSpec::Reader spec) {
  auto b = spec.getBatching();
  return {.threads = 1,
          .page_tokens = b.getPageTokens(),
          .context = spec.getModel().getContext(),
          .step_tokens = b.getStepTokens(),
          .chunk_tokens = b.getChunkTokens(),
          .running = b.getRunning(),
          .queue = b.getQueue(),
          .default_max_tokens = b.getDefaultMaxTokens()};
}

}  // namespace

engine_setup sim_house::setup_of(const wire<schema::StartEngine>& order) {
  engine_setup setup{.tokens_only = false, .inside = facts_.shape, .trace = trace_};
  engine_config config;
  auto read = unpack(order, [&](schema::StartEngine::Reader r) {
    setup.slot = r.getSpec().getSlot();
    setup.epoch = r.getSpec().getEpoch();
    config = config_of(r.getSpec());
  });
  check(bool(read));
  // Houses die with their hosts; what they started looks at the run only.
  setup.open = [&sys = sys_, &facts = facts_, size = size_, slot = setup.slot, epoch = setup.epoch,
                config](const opening& told) -> result<opened_engine> {
    told.progress(1, 2);
    if (facts.stormy && facts.chance.once_in(12)) {
      facts.happened(fault::open_failed);
      return fail("weights: too few bytes");
    }
    if (facts.stormy && facts.chance.once_in(16)) {
      facts.happened(fault::open_threw);
      throw std::runtime_error("planted");
    }
    told.progress(2, 2);
    auto serving = sim_engine::make(sys, facts, config, size.pages, size.depth);
    serving->core().slot = slot;
    serving->core().epoch = epoch;
    return opened_engine{facts.model, std::move(serving)};
  };
  return setup;
}

void sim_house::move_in(const std::shared_ptr<tenant>& who, const engine_setup& setup,
                        uint32_t epoch, directory_actor directory) {
  bool fronted = facts_.planted == bug::stale_epoch || facts_.planted == bug::stuck_drain;
  auto settle = [this](const auto& one) {
    if (moved_in) moved_in(caf::actor_cast<caf::actor>(one));
  };
  if (fronted) {
    auto front = sys_.spawn(faulty_front, facts_.planted, epoch, directory);
    settle(front);
    directory = caf::actor_cast<directory_actor>(front);
  }
  who->engine = sys_.spawn(run_engine, setup, directory);
  settle(who->engine);
  who->engine->attach_functor([then = who->then](const caf::error& why) { then(why_ended(why)); });
}

result<void> sim_house::start(const wire<schema::StartEngine>& order, uint16_t id,
                              directory_actor directory, ended then) {
  if (facts_.stormy && facts_.chance.once_in(12)) {
    facts_.happened(fault::start_refused);
    return fail("no process can be started");
  }
  auto setup = setup_of(order);
  uint32_t epoch = setup.epoch;
  if (facts_.planted == bug::stale_epoch) setup.epoch = 1;
  auto who = std::make_shared<tenant>(tenant{.then = std::move(then)});
  tenants_[id] = who;
  auto enter = [this, who, setup = std::move(setup), epoch, directory = std::move(directory)] {
    if (!who->cancelled) move_in(who, setup, epoch, directory);
  };
  sys_.spawn(alarm, facts_.chance.below(200'000), enter);
  return {};
}

/// Here only their host's end matters.
result<void> sim_house::start_ranks(const wire<schema::StartRanks>&, uint32_t, uint16_t id,
                                    ended then) {
  tenants_[id] = std::make_shared<tenant>(tenant{.then = std::move(then)});
  return {};
}

void sim_house::kill(uint16_t id) {
  auto found = tenants_.find(id);
  if (found == tenants_.end()) return;
  auto who = found->second;
  tenants_.erase(found);
  if (who->engine) return caf::anon_send_exit(who->engine, caf::exit_reason::kill);
  who->cancelled = true;
  who->then("it was killed before it began");
}

void sim_house::die() {
  for (auto& [id, who] : tenants_) {
    who->then = nullptr;
    who->cancelled = true;
    if (who->engine) caf::anon_send_exit(who->engine, caf::exit_reason::kill);
  }
  tenants_.clear();
}

std::vector<uint16_t> sim_house::running() const {
  std::vector<uint16_t> all;
  for (const auto& [id, who] : tenants_)
    if (who->engine) all.push_back(id);
  return all;
}

}  // namespace lethe::sim
