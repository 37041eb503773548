#include "actors/cluster/directory.hpp"

namespace lethe {

namespace {

constexpr std::chrono::milliseconds tick_every{20};
constexpr fleet_time say_why_ms = 1000;   // for an engine to say why it ends
constexpr fleet_time farewell_ms = 2000;  // for hosts to hear that the cluster goes down

fleet_rules rules_of(schema::Config::Reader c) {
  auto h = c.getHealth();
  return {.restart_ms = h.getRestartMs(),
          .restart_max_ms = h.getRestartMaxMs(),
          .restarts = h.getRestarts(),
          .drain_ms = h.getDrainMs(),
          .together_ms = h.getLostAfterMs()};
}

}  // namespace

void directory_state::begin(directory_actor::stateful_pointer<directory_state> self,
                            cluster_plan plan, scheduler_actor scheduler, tracer* trace,
                            directory_setup setup) {
  self_ = self;
  clerk_ = clerk(trace, actor_kind::directory);
  plan_ = std::move(plan);
  fleet_.emplace(rules_of(plan_->config()));
  by_load_.emplace(plan_->scaling());
  scheduler_ = std::move(scheduler);
  setup_ = std::move(setup);
  begun_ns_ = clerk_.now_ns();
  fleet_->want(plan_->places(), now());
  self_->delayed_send(directory_actor(self_), tick_every, tick::value);
}

caf::result<wire<schema::Joined>> directory_state::join(const wire<schema::Join>& m) {
  auto why = schema::JoinRefusal::NO_MESSAGE;
  clerk_.read(m, [&](schema::Join::Reader r) {
    why = schema::JoinRefusal::NONE;
    std::string host = r.getHost();
    auto handle = sender_of<supervisor_actor>(self_);
    auto before = hosts_.find(host);
    if (!plan_->knows_host(host))
      why = schema::JoinRefusal::UNKNOWN_HOST;
    else if (!std::ranges::equal(bytes_of(r.getProgram()), setup_.program))
      why = schema::JoinRefusal::OTHER_PROGRAM;
    else if (before != hosts_.end() && before->second.handle.node() != handle.node())
      why = schema::JoinRefusal::OTHER_PROCESS;
    if (why != schema::JoinRefusal::NONE) return;
    if (before != hosts_.end()) fleet_->host_lost(host, now());  // it began anew
    hosts_[host] = {handle, r.getPid(), r.getCores(), r.getMemory()};
    self_->monitor(handle);
    fleet_->host_joined(host);
    if (told_down_) tell_leave(handle);  // the others know
  });
  act();
  return clerk_.write<schema::Joined>(0, [&](schema::Joined::Builder b) { b.setRefused(why); });
}

void directory_state::engine_said(const wire<schema::EngineState>& m) {
  clerk_.read(m, [&](schema::EngineState::Reader r) {
    uint16_t id = r.getSlot();
    auto handle = sender_of<engine_actor>(self_);
    bool failed = r.getPhase() == schema::Phase::FAILED;
    // One that was replaced must not pass for its successor, whom a drain would then miss.
    bool ours = failed ? fleet_->engine_ended(id, r.getEpoch(), r.getReason(), now())
                       : fleet_->engine_said(id, r.getEpoch(), r.getPhase(), now());
    if (!ours) return;
    auto& known = engines_[id];
    bool again = known.handle && known.epoch == r.getEpoch();
    if (!again) self_->monitor(handle);
    if (r.getDoor() != 0 && !(again && known.door != 0)) start_ranks(id, r.getEpoch(), r.getDoor());
    known = {handle, r.getEpoch(), m, r.getDoor()};
    self_->delegate(scheduler_, m);
  });
  act();
}

/// Those on its own host it starts itself.
void directory_state::start_ranks(uint16_t id, uint32_t epoch, uint16_t door) {
  const auto& place = fleet_->engines().at(id).place;
  for (const auto& name : place.hosts()) {
    auto host = hosts_.find(name);
    if (name == place.host || host == hosts_.end()) continue;
    self_->send(host->second.handle,
                clerk_.write<schema::StartRanks>(0, [&](schema::StartRanks::Builder b) {
                  plan_->describe(b.initSpec(), id, epoch, place, name);
                  b.setDoor(door);
                }));
  }
}

void directory_state::engine_ended(const wire<schema::EngineEnded>& m) {
  clerk_.read(m, [&](schema::EngineEnded::Reader r) {
    auto known = fleet_->engines().find(r.getSlot());
    if (known == fleet_->engines().end()) return;
    auto by = sender_of<supervisor_actor>(self_);
    auto host = std::ranges::find_if(hosts_, [&](auto& h) { return h.second.handle == by; });
    if (host == hosts_.end()) return;  // it was lost, and all that it had
    std::string reason = r.getReason();
    if (host->first == known->second.place.host)
      fleet_->engine_ended(r.getSlot(), r.getEpoch(), reason, now());
    else if (r.getEpoch() == known->second.epoch)  // the engine knows better why, if it knows
      ended_ranks_[r.getSlot()] = {r.getEpoch(),
                                   fmt::format("its ranks on {}: {}", host->first, reason),
                                   now() + say_why_ms};
  });
  act();
}

/// An engine that does not notice that its ranks have ended waits for them in vain.
void directory_state::end_without_ranks() {
  for (auto at = ended_ranks_.begin(); at != ended_ranks_.end();) {
    auto [id, ended] = *at;
    if (now() < ended.due) {
      ++at;
      continue;
    }
    at = ended_ranks_.erase(at);
    auto known = fleet_->engines().find(id);
    bool ends = known == fleet_->engines().end() || known->second.phase == schema::Phase::DRAINING;
    if (!ends) engine_lost(id, ended.epoch, ended.reason);
  }
}

void directory_state::down(const caf::down_msg& d) {
  // An engine that quit has said why, and so will its host; this word of it may come before both.
  bool says_why =
      d.reason == caf::exit_reason::user_shutdown || d.reason == caf::exit_reason::unknown;
  for (auto& [id, known] : engines_)
    if (known.handle.address() == d.source && !says_why)
      engine_lost(id, known.epoch, why_ended(d.reason));
  for (auto at = hosts_.begin(); at != hosts_.end(); ++at) {
    if (at->second.handle.address() != d.source) continue;
    bool cut = d.reason == caf::exit_reason::remote_link_unreachable;
    fleet_->host_lost(at->first, now(),
                      cut ? "its host was lost" : "its supervisor: " + why_ended(d.reason));
    hosts_.erase(at);
    break;
  }
  act();
}

/// A process that only stopped would keep its memory, and wake up again.
void directory_state::engine_lost(uint16_t id, uint32_t epoch, const std::string& why) {
  auto instance = fleet_->engines().find(id);
  if (instance == fleet_->engines().end()) return;
  std::string host = instance->second.place.host;
  bool was_alive = instance->second.alive();
  if (fleet_->engine_ended(id, epoch, why, now()) && was_alive)
    obey({.kind = fleet_order::what::kill, .id = id, .epoch = epoch, .host = host});
}

void directory_state::on_tick() {
  end_without_ranks();
  act();
  look_at_load();
  turn_roster();
  self_->delayed_send(directory_actor(self_), tick_every, tick::value);
}

void directory_state::act() {
  for (const auto& order : fleet_->due(now())) obey(order);
  std::erase_if(engines_, [this](const auto& e) { return !fleet_->engines().contains(e.first); });
  let_hosts_go();
  if (!fleet_->leaving()) return;
  if (!told_down_ && (fleet_->engines().empty() || now() >= leave_by_)) tell_leave();
  if (told_down_) end_when_alone();
}

/// A host that wants to go, or that nobody wants, is let go when its engines are.
void directory_state::let_hosts_go() {
  for (auto& [host, one] : hosts_) {
    if ((!one.leaves && plan_->knows_host(host)) || one.told || !fleet_->is_idle(host)) continue;
    one.told = true;
    tell_leave(one.handle);
  }
}

void directory_state::obey(const fleet_order& order) {
  auto host = hosts_.find(order.host);
  switch (order.kind) {
    case fleet_order::what::start: {
      if (host == hosts_.end()) return;
      auto start = clerk_.write<schema::StartEngine>(0, [&](schema::StartEngine::Builder b) {
        plan_->describe(b.initSpec(), order.id, order.epoch, fleet_->engines().at(order.id).place);
      });
      return self_->send(host->second.handle, start);
    }
    case fleet_order::what::drain: {
      auto drain = clerk_.write<schema::Drain>(0, [&](schema::Drain::Builder b) {
        b.setSlot(order.id);
        b.setEpoch(order.epoch);
      });
      return self_->send(scheduler_, drain);
    }
    case fleet_order::what::kill: {
      if (host == hosts_.end()) return;
      auto kill = clerk_.write<schema::KillEngine>(0, [&](schema::KillEngine::Builder b) {
        b.setSlot(order.id);
        b.setEpoch(order.epoch);
      });
      return self_->send(host->second.handle, kill);
    }
  }
}

void directory_state::tell_leave() {
  told_down_ = true;
  alone_by_ = now() + farewell_ms;
  for (auto& [name_of_host, host] : hosts_) tell_leave(host.handle);
}

void directory_state::tell_leave(const supervisor_actor& host) {
  self_->send(host, clerk_.write<schema::Leave>(0, [](auto b) { b.setNow(true); }));
}

/// What was sent to another host is lost if our process ends first.
void directory_state::end_when_alone() {
  bool alone = std::ranges::all_of(
      hosts_, [this](const auto& h) { return h.second.handle.node() == self_->node(); });
  if (ended_ || (!alone && now() < alone_by_)) return;
  ended_ = true;
  if (setup_.down) setup_.down();
}

directory_state::answer directory_state::done() const {
  return clerk_.write<schema::ControlAnswer>(0,
                                             [](schema::ControlAnswer::Builder b) { b.setDone(); });
}

directory_state::answer directory_state::refused(const std::string& why) const {
  return clerk_.write<schema::ControlAnswer>(
      0, [&](schema::ControlAnswer::Builder b) { b.setRefused(why); });
}

caf::result<wire<schema::ControlAnswer>> directory_state::control(
    const wire<schema::ControlAsk>& m) {
  caf::result<answer> said = refused("no such request");
  clerk_.read(m, [&](schema::ControlAsk::Reader r) {
    switch (r.which()) {
      case schema::ControlAsk::STATUS:
        said = status();
        return;
      case schema::ControlAsk::SCALE:
        said = r.getScale() == 0 ? refused("0 engines serve nobody; lethe down ends the cluster")
                                 : set_plan(plan_->scale(r.getScale()));
        return;
      case schema::ControlAsk::DRAIN:
        said = drain(r.getDrain());
        return;
      case schema::ControlAsk::APPLY:
        said = apply(r.getApply().getConfig(), r.getApply().getLook());
        return;
      case schema::ControlAsk::DOWN:
        said = leave(r.getDown());
        return;
      case schema::ControlAsk::TRACE:
        said = traces();
        return;
      case schema::ControlAsk::HOST_LEAVES:
        said = let_host_leave(r.getHostLeaves());
        return;
    }
  });
  act();
  return said;
}

directory_state::answer directory_state::set_plan(result<void> changed) {
  if (!changed) return refused(changed.why().text);
  fleet_->want(plan_->places(), now());
  return done();
}

directory_state::answer directory_state::drain(uint16_t id) {
  if (fleet_->wanted().size() == 1)
    return refused("it is the only engine that is wanted; scale up first, or lethe down");
  if (auto by = plan_->scaling(); by.by_load() && fleet_->wanted().size() <= by.least)
    return refused(
        fmt::format("[scaling] asks for {} engines at least; another least in the file, "
                    "then lethe apply",
                    by.least));
  if (!fleet_->retire(id, now())) return refused(fmt::format("there is no engine {} to drain", id));
  plan_->keep_only(fleet_->wanted());
  return done();
}

directory_state::answer directory_state::apply(schema::Config::Reader next, bool look) {
  auto lines = plan_->changes(next);
  if (!lines) return refused(lines.why().text);
  if (!look && !lines->empty())
    if (auto changed = plan_->apply(next); !changed) return refused(changed.why().text);
  if (!look) {
    by_load_->change(plan_->scaling());
    fleet_->want(plan_->places(), now());
    if (setup_.changed) setup_.changed(plan_->layout());
  }
  return clerk_.write<schema::ControlAnswer>(0, [&](schema::ControlAnswer::Builder b) {
    auto list = b.initChanges(uint32_t(lines->size()));
    for (uint32_t i = 0; i < lines->size(); ++i) list.set(i, (*lines)[i]);
  });
}

directory_state::answer directory_state::leave(schema::Down how) {
  leave_by_ = how == schema::Down::NOW ? now() : now() + plan_->config().getHealth().getDrainMs();
  self_->send(scheduler_, clerk_.write<schema::Leave>(0, [](auto b) { b.setNow(false); }));
  fleet_->leave(now());
  return done();
}

directory_state::answer directory_state::let_host_leave(const std::string& host) {
  auto found = hosts_.find(host);
  if (found == hosts_.end()) return refused("host " + host + " is not here");
  found->second.leaves = true;
  fleet_->host_leaves(host);
  return done();
}

directory_actor::behavior_type directory(directory_actor::stateful_pointer<directory_state> self,
                                         cluster_plan plan, scheduler_actor scheduler,
                                         tracer* trace, directory_setup setup) {
  be_quiet(self);
  auto& state = self->state;
  state.begin(self, std::move(plan), std::move(scheduler), trace, std::move(setup));
  self->set_down_handler([&state](caf::scheduled_actor*, caf::down_msg& d) { state.down(d); });
  return {
      [&state](const wire<schema::Join>& m) { return state.join(m); },
      [&state](const wire<schema::EngineState>& m) { state.engine_said(m); },
      [&state](const wire<schema::EngineEnded>& m) { state.engine_ended(m); },
      [&state](const wire<schema::NodeKey>& m) { state.node_key(m); },
      [&state](const wire<schema::TokenKeys>& m) { state.token_keys(m); },
      [&state](const wire<schema::ServiceState>& m) { state.gateway_said(m); },
      [&state](const wire<schema::ControlAsk>& m) { return state.control(m); },
      [&state](tick) { state.on_tick(); },
  };
}

}  // namespace lethe
