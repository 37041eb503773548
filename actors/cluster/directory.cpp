#include "actors/cluster/directory.hpp"

#include "runtime/trace/trace_limits.hpp"

namespace lethe {

namespace {

constexpr std::chrono::milliseconds tick_every{20};

fleet_rules rules_of(schema::Config::Reader c) {
  auto h = c.getHealth();
  return {.restart_ms = h.getRestartMs(),
          .restart_max_ms = h.getRestartMaxMs(),
          .restarts = h.getRestarts(),
          .drain_ms = h.getDrainMs()};
}

}  // namespace

void directory_state::begin(directory_actor::stateful_pointer<directory_state> self,
                            cluster_plan plan, scheduler_actor scheduler, tracer* trace,
                            directory_events events) {
  self_ = self;
  clerk_ = clerk(trace, actor_kind::directory);
  plan_ = std::move(plan);
  fleet_.emplace(rules_of(plan_->config()));
  scheduler_ = std::move(scheduler);
  events_ = std::move(events);
  begun_ns_ = clerk_.now_ns();
  fleet_->want(plan_->places(), now());
  self_->delayed_send(directory_actor(self_), tick_every, tick::value);
}

caf::result<wire<schema::Joined>> directory_state::join(const wire<schema::Join>& m) {
  bool known = false;
  clerk_.read(m, [&](schema::Join::Reader r) {
    std::string host = r.getHost();
    known = plan_->knows_host(host);
    if (!known) return;
    auto handle = sender_of<supervisor_actor>(self_);
    if (hosts_.contains(host)) fleet_->host_lost(host, now());  // it began anew
    hosts_[host] = {handle, r.getPid(), r.getCores(), r.getMemory()};
    self_->monitor(handle);
    fleet_->host_joined(host);
  });
  act();
  return clerk_.write<schema::Joined>(0, [&](schema::Joined::Builder b) { b.setKnown(known); });
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
    if (!known.handle || known.epoch != r.getEpoch()) self_->monitor(handle);
    known = {handle, r.getEpoch(), m};
    self_->delegate(scheduler_, m);
  });
  act();
}

void directory_state::engine_ended(const wire<schema::EngineEnded>& m) {
  clerk_.read(m, [&](schema::EngineEnded::Reader r) {
    fleet_->engine_ended(r.getSlot(), r.getEpoch(), r.getReason(), now());
  });
  act();
}

void directory_state::down(const caf::down_msg& d) {
  for (auto& [id, known] : engines_)
    if (known.handle.address() == d.source)
      fleet_->engine_ended(id, known.epoch, "its process is gone or does not answer", now());
  for (auto at = hosts_.begin(); at != hosts_.end(); ++at) {
    if (at->second.handle.address() != d.source) continue;
    fleet_->host_lost(at->first, now());
    hosts_.erase(at);
    break;
  }
  act();
}

void directory_state::on_tick() {
  act();
  self_->delayed_send(directory_actor(self_), tick_every, tick::value);
}

void directory_state::act() {
  for (const auto& order : fleet_->due(now())) obey(order);
  std::erase_if(engines_, [this](const auto& e) { return !fleet_->engines().contains(e.first); });
  if (!fleet_->leaving() || told_down_) return;
  if (fleet_->engines().empty() || now() >= leave_by_) tell_leave();
}

void directory_state::obey(const fleet_order& order) {
  auto host = hosts_.find(order.host);
  switch (order.kind) {
    case fleet_order::what::start: {
      if (host == hosts_.end()) return;
      auto start = clerk_.write<schema::StartEngine>(0, [&](schema::StartEngine::Builder b) {
        plan_->describe(b.initSpec(), order.id, order.epoch, order.host);
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
  for (auto& [name_of_host, host] : hosts_)
    self_->send(host.handle, clerk_.write<schema::Leave>(0, [](auto b) { b.setNow(true); }));
  if (events_.down) events_.down();
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
  if (!fleet_->retire(id, now())) return refused(fmt::format("there is no engine {} to drain", id));
  plan_->keep_only(fleet_->wanted());
  return done();
}

directory_state::answer directory_state::apply(schema::Config::Reader next, bool look) {
  auto lines = plan_->changes(next);
  if (!lines) return refused(lines.why().text);
  if (!look && !lines->empty())
    if (auto changed = plan_->apply(next); !changed) return refused(changed.why().text);
  if (!look) fleet_->want(plan_->places(), now());
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

caf::result<wire<schema::ControlAnswer>> directory_state::status() {
  auto reply = self_->make_response_promise<answer>();
  auto ask = clerk_.write<schema::LoadsAsk>(0, [](auto) {});
  self_->request(scheduler_, std::chrono::seconds(2), ask)
      .then(
          [this, reply](const wire<schema::Loads>& m) mutable {
            answer said = refused("the scheduler's answer was no message");
            clerk_.read(m, [&](schema::Loads::Reader loads) {
              said = clerk_.write<schema::ControlAnswer>(0, [&](schema::ControlAnswer::Builder b) {
                write_status(b.initStatus(), loads);
              });
            });
            reply.deliver(said);
          },
          [this, reply](caf::error&) mutable {
            reply.deliver(refused("the scheduler does not answer"));
          });
  return reply;
}

namespace {

void write_engine(schema::EngineStatus::Builder b, const engine_instance& e, fleet_time now) {
  b.setSlot(e.id);
  b.setHost(e.place.host);
  b.setRestarts(uint16_t(std::min<uint32_t>(e.restarts, UINT16_MAX)));
  b.setRetryMs(e.phase == schema::Phase::WAITING && e.retry_at > now ? uint32_t(e.retry_at - now)
                                                                     : 0);
}

}  // namespace

void directory_state::write_status(schema::Status::Builder b, schema::Loads::Reader loads) {
  auto c = plan_->config();
  b.setCluster(c.getName());
  b.setProfile(c.getProfile());
  b.setUpMs((clerk_.now_ns() - begun_ns_) / 1'000'000);
  b.setWanted(uint16_t(fleet_->wanted().size()));
  b.setLeaving(fleet_->leaving());
  b.setCounts(loads.getCounts());
  b.setMeasures(loads.getMeasures());
  const auto& listed = plan_->layout().hosts;
  auto hosts = b.initHosts(uint32_t(listed.size()));
  for (uint32_t i = 0; i < listed.size(); ++i) {
    auto h = hosts[i];
    h.setName(listed[i].name);
    h.setAddress(listed[i].address);
    auto joined = hosts_.find(listed[i].name);
    if (joined == hosts_.end()) continue;
    h.setJoined(true);
    h.setPid(joined->second.pid);
    h.setCores(joined->second.cores);
    h.setMemory(joined->second.memory);
  }
  auto engines = b.initEngines(uint32_t(fleet_->engines().size()));
  uint32_t i = 0;
  for (const auto& [id, e] : fleet_->engines()) {
    auto to = engines[i++];
    write_engine(to, e, now());
    to.setTensor(c.getEngines().getTensor());
    to.setPipeline(c.getEngines().getPipeline());
    if (auto known = engines_.find(id); known != engines_.end() && known->second.epoch == e.epoch) {
      auto copied =
          unpack(known->second.state, [&](schema::EngineState::Reader r) { to.setState(r); });
      check(bool(copied));
      if (to.getState().getPhase() == schema::Phase::READY) b.setModel(to.getState().getModel());
    }
    to.getState().setPhase(e.phase);
    to.getState().setEpoch(e.epoch);
    if (!e.reason.empty()) to.getState().setReason(e.reason);
    for (auto load : loads.getLoads())
      if (load.getSlot() == id && load.getEpoch() == e.epoch) to.setLoad(load);
  }
}

caf::result<wire<schema::ControlAnswer>> directory_state::traces() {
  auto all = std::make_shared<gathering>();
  all->reply = self_->make_response_promise<answer>();
  // One actor of each process answers for all of it.
  std::map<uint32_t, std::string> asked;
  for (const auto& [host, one] : hosts_)
    if (asked.emplace(one.pid, host).second) ask_traces(all, one.handle, host);
  for (const auto& [id, known] : engines_) {
    uint32_t pid = 0;
    auto read = unpack(known.state, [&](schema::EngineState::Reader r) { pid = r.getPid(); });
    auto instance = fleet_->engines().find(id);
    if (!read || instance == fleet_->engines().end() || !instance->second.alive()) continue;
    if (asked.emplace(pid, instance->second.place.host).second)
      ask_traces(all, known.handle, instance->second.place.host);
  }
  if (all->waiting == 0) deliver_traces(*all);
  return all->reply;
}

/// The process's clock was read about half way between asking and hearing.
template <class Handle>
void directory_state::ask_traces(const std::shared_ptr<gathering>& all, const Handle& whom,
                                 const std::string& host) {
  uint64_t asked = clerk_.now_ns();
  ++all->waiting;
  auto ask = clerk_.write<schema::TraceAsk>(0, [this](schema::TraceAsk::Builder b) {
    // Together they must fit one answer.
    b.setMost(uint32_t(limits::trace_records_max / (hosts_.size() + engines_.size())));
  });
  self_->request(whom, std::chrono::seconds(5), ask)
      .then(
          [this, all, asked, host](const answer& m) {
            all->heard.push_back({m, asked, clerk_.now_ns(), host});
            if (--all->waiting == 0) deliver_traces(*all);
          },
          [this, all, asked, host](caf::error&) {
            all->heard.push_back({{}, asked, clerk_.now_ns(), host});  // it stays silent, and shows
            if (--all->waiting == 0) deliver_traces(*all);
          });
}

void directory_state::deliver_traces(gathering& all) {
  all.reply.deliver(clerk_.write<schema::ControlAnswer>(0, [&](schema::ControlAnswer::Builder b) {
    auto list = b.initTrace(uint32_t(all.heard.size()));
    for (uint32_t i = 0; i < all.heard.size(); ++i) {
      const auto& h = all.heard[i];
      auto read = unpack(h.said, [&](schema::ControlAnswer::Reader r) {
        if (!r.isTrace() || r.getTrace().size() != 1) return;
        list.setWithCaveats(i, r.getTrace()[0]);
        list[i].setOffsetNs(int64_t(h.asked_ns / 2 + h.heard_ns / 2) - int64_t(list[i].getNowNs()));
        list[i].setErrorNs((h.heard_ns - h.asked_ns) / 2);
      });
      if (!read) list[i].setNowNs(0);
      list[i].setHost(h.host);
    }
  }));
}

directory_actor::behavior_type directory(directory_actor::stateful_pointer<directory_state> self,
                                         cluster_plan plan, scheduler_actor scheduler,
                                         tracer* trace, directory_events events) {
  self->set_default_handler(refuse_quietly);
  auto& state = self->state;
  state.begin(self, std::move(plan), std::move(scheduler), trace, std::move(events));
  self->set_down_handler([&state](caf::scheduled_actor*, caf::down_msg& d) { state.down(d); });
  return {
      [&state](const wire<schema::Join>& m) { return state.join(m); },
      [&state](const wire<schema::EngineState>& m) { state.engine_said(m); },
      [&state](const wire<schema::EngineEnded>& m) { state.engine_ended(m); },
      [&state](const wire<schema::ControlAsk>& m) { return state.control(m); },
      [&state](tick) { state.on_tick(); },
  };
}

}  // namespace lethe
