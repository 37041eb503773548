#include "actors/cluster/engine_actor.hpp"

#include "actors/cluster/process.hpp"
#include "runtime/arena/arena.hpp"
#include "runtime/trace/trace_limits.hpp"

namespace lethe {

namespace {

constexpr size_t padding_most = 4096;  // a gateway has far fewer clients at once
uint64_t rounded_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }
uint32_t pages_told(const engine_numbers& n) {
  return uint32_t(std::min<uint64_t>(rounded_up(n.pages_reserved, n.pages / 10 + 1), n.pages));
}

}  // namespace

void engine_state::begin(engine_actor::stateful_pointer<engine_state> self, engine_setup setup,
                         directory_actor directory) {
  self_ = self;
  setup_ = std::move(setup);
  took_ = told_together(setup_.tokens_only ? metrics_gate::requests_least : 1);
  clerk_ = clerk(setup_.trace, actor_kind::engine, setup_.slot);
  directory_ = std::move(directory);
  say(schema::Phase::STARTING);
  auto opened = setup_.open(told_of_opening());
  if (!opened) {
    say(schema::Phase::FAILED, opened.why().text);
    return self_->quit(caf::exit_reason::user_shutdown);
  }
  auto key = node_key::make();
  check(bool(key));
  api_service api{opened->model, opened->serving.get(), setup_.rules};
  auto inside = std::make_shared<sealed_service>(
      sealed_service{api, *std::move(key), setup_.epoch, opened->release, {}, setup_.inside});
  engine_ = std::make_shared<running_engine>(*std::move(opened), std::move(inside), std::move(api),
                                             setup_.shape, setup_.tokens_only);
  say(schema::Phase::READY);
  self_->delayed_send(engine_actor(self_), std::chrono::milliseconds(setup_.report_ms),
                      tick::value);
}

opening engine_state::told_of_opening() {
  return {.progress =
              [this, told = uint64_t{0}](uint64_t done, uint64_t total) mutable {
                uint64_t now = clerk_.now_ns();
                if (now - told <= 100'000'000 && done != total) return;
                told = now;
                say(schema::Phase::LOADING, {}, done, total);
              },
          .door =
              [this](uint16_t port) {
                door_ = port;
                say(schema::Phase::LOADING);
              }};
}

void engine_state::say(schema::Phase phase, const std::string& reason, uint64_t done,
                       uint64_t total) {
  self_->send(directory_, clerk_.write<schema::EngineState>(0, [&](schema::EngineState::Builder b) {
    b.setSlot(setup_.slot);
    b.setEpoch(setup_.epoch);
    b.setPhase(phase);
    b.setDone(done);
    b.setTotal(total);
    b.setPid(uint32_t(::getpid()));
    b.setReason(reason);
    b.setArenas(uint32_t(count_arenas().alive));
    b.setDoor(door_);
    if (phase != schema::Phase::READY) return;
    const auto& c = serving().config();
    b.setNode(data_of(engine_->service->key.published().to_bytes()));
    b.setCapacity(c.requests_max());
    b.setContext(c.context);
    b.setModel(engine_->opened.model->name);
  }));
}

void engine_state::say_lost(uint64_t request, schema::LossReason why, const face_actor& client,
                            bytes_view refusal) {
  self_->send(client, clerk_.write<schema::Lost>(request, [&](schema::Lost::Builder b) {
    b.setRequest(request);
    b.setReason(why);
    b.setRefusal(data_of(refusal));
  }));
}

void engine_state::refuse(uint64_t request, schema::LossReason why, const face_actor& client,
                          bytes_view refusal) {
  say_lost(request, why, client, refusal);
  end_unknown(request, schema::Outcome::FAILED);
}

void engine_state::end_unknown(uint64_t request, schema::Outcome how) {
  if (!scheduler_) return;
  self_->send(scheduler_, clerk_.write<schema::Release>(request, [&](schema::Release::Builder b) {
    b.setRequest(request);
    b.setEngine(setup_.slot);
    b.setEpoch(setup_.epoch);
    b.setOutcome(how);
  }));
}

void engine_state::submit(const wire<schema::Submit>& m) {
  clerk_.read(m, [&](schema::Submit::Reader r) {
    auto client = sender_of<face_actor>(self_);
    uint64_t id = r.getRequest();
    bool ours = r.getEngine() == setup_.slot && r.getEpoch() == setup_.epoch && engine_;
    if (!ours || requests_.contains(id)) return refuse(id, schema::LossReason::STALE, client);
    if (is_full()) {
      auto said = engine_->door.refuse(bytes_of(r.getSealed()), bytes_of(r.getToken()),
                                       refusal_reason::full);
      return refuse(id, schema::LossReason::ENGINE_FULL, client,
                    said ? bytes_view(*said) : bytes_view());
    }
    request_desk desk{engine_, setup_.trace, setup_.slot, setup_.epoch, setup_.ticks_from};
    auto actor =
        self_->spawn<caf::monitored>(run_request, desk, id, m, client, engine_actor(self_));
    requests_.emplace(id, running{actor, client});
  });
}

/// A request that only pads has no place here, but there must not be any number of them.
bool engine_state::is_full() const {
  return requests_.size() - padding_ >= serving().config().requests_max() ||
         padding_ >= padding_most;
}

void engine_state::cancel(const wire<schema::Cancel>& m) {
  clerk_.read(m, [&](schema::Cancel::Reader r) {
    auto found = requests_.find(r.getRequest());
    if (found != requests_.end()) return self_->send(found->second.actor, m);
    end_unknown(r.getRequest(), schema::Outcome::CANCELLED);  // it was placed here and never came
  });
}

void engine_state::release(const wire<schema::Release>& m) {
  clerk_.read(m, [&](schema::Release::Reader r) {
    auto found = requests_.find(r.getRequest());
    if (found != requests_.end() && found->second.ended) {
      requests_.erase(found);
    } else if (found != requests_.end()) {
      found->second.released = true;
      ++padding_;
    }
    bool enough = took_.add(requests_took::read(r.getTook()));
    if (!scheduler_) return;
    self_->send(scheduler_, pack<schema::Release>(m.stamp, [&](schema::Release::Builder b) {
                  b.setRequest(r.getRequest());
                  b.setEngine(r.getEngine());
                  b.setEpoch(r.getEpoch());
                  b.setOutcome(r.getOutcome());
                  if (enough) took_.take().write(b.initTook());
                }));
    if (enough && setup_.tokens_only) told_ = serving().numbers();
  });
  end_when_empty();
}

void engine_state::adopted(const wire<schema::Adopted>& m) {
  clerk_.read(m, [&](schema::Adopted::Reader) { scheduler_ = sender_of<scheduler_actor>(self_); });
}

void engine_state::drain(const wire<schema::Drain>& m) {
  clerk_.read(m, [&](schema::Drain::Reader r) {
    if (r.getSlot() != setup_.slot || r.getEpoch() != setup_.epoch) return;
    draining_ = true;
    say(schema::Phase::DRAINING);
  });
  end_when_empty();
}

void engine_state::begin_epoch(const wire<schema::BeginEpoch>& m) {
  clerk_.read(m, [&](schema::BeginEpoch::Reader r) {
    // A key that the scheduler hears nothing of would be published for nothing: the next roster
    // then.
    bool ours = r.getSlot() == setup_.slot && r.getEpoch() == setup_.epoch;
    if (!ours || !engine_ || !scheduler_) return;
    std::vector<token_key> issuers;
    for (auto spki : r.getTokenKeys())
      if (auto key = token_key::from_spki(bytes_of(spki)); key) issuers.push_back(*std::move(key));
    auto node = engine_->door.begin(r.getRoster(), std::move(issuers), now_ms(),
                                    uint64_t{r.getGraceS()} * 1000);
    if (!node) return;
    auto said = clerk_.write<schema::NodeKey>(0, [&](schema::NodeKey::Builder b) {
      b.setSlot(setup_.slot);
      b.setEpoch(setup_.epoch);
      b.setRoster(r.getRoster());
      b.setNode(data_of(node->to_bytes()));
    });
    self_->send(scheduler_, said);
    self_->send(directory_, said);
  });
}

void engine_state::leave() {
  draining_ = true;
  for (auto& [id, r] : requests_)
    self_->send(r.actor, clerk_.write<schema::Cancel>(id, [&](auto b) { b.setRequest(id); }));
  end_when_empty();
}

/// A request that broke has wiped its arenas and tells nobody. One that ended well has said so,
/// though its word may be behind this one.
void engine_state::down(const caf::down_msg& d) {
  auto at = std::ranges::find_if(
      requests_, [&](const auto& r) { return r.second.actor.address() == d.source; });
  if (at == requests_.end()) return;
  if (!d.reason && !at->second.released) {
    at->second.ended = true;
    return;
  }
  auto [id, was] = *at;
  requests_.erase(at);
  padding_ -= was.released;
  if (d.reason) say_lost(id, schema::LossReason::ENGINE_LOST, was.client);
  if (!was.released) end_unknown(id, schema::Outcome::FAILED);
  end_when_empty();
}

/// The directory would learn that by itself, but not why.
void engine_state::broke(const std::string& why) {
  if (self_) say(schema::Phase::FAILED, why);
}

/// Drained: every request has ended, so every arena is wiped.
void engine_state::end_when_empty() {
  if (!draining_ || !requests_.empty()) return;
  say(schema::Phase::GONE);
  self_->quit(caf::exit_reason::normal);
}

void engine_state::on_tick() {
  report_load();
  engine_->door.expire(now_ms());
  self_->delayed_send(engine_actor(self_), std::chrono::milliseconds(setup_.report_ms),
                      tick::value);
  if (auto health = serving().health(); !health) {
    // As if it had been killed: the scheduler tells every client, every request cancels itself.
    // Whoever has had words of users says why in one of a closed list.
    say(schema::Phase::FAILED, setup_.tokens_only ? "its ranks failed" : health.why().text);
    self_->quit(caf::exit_reason::user_shutdown);
  }
}

/// Outside the lab a load says how full the engine is, and nothing of one request's length.
void engine_state::report_load() {
  if (!scheduler_) return;
  auto n = serving().numbers();
  const bool coarse = setup_.tokens_only;
  uint64_t now = clerk_.now_ns();
  if (n.steps != steps_ || n.running == 0) moved_ns_ = now;
  steps_ = n.steps;
  self_->send(scheduler_, clerk_.write<schema::EngineLoad>(0, [&](schema::EngineLoad::Builder b) {
    b.setSlot(setup_.slot);
    b.setEpoch(setup_.epoch);
    b.setRunning(n.running);
    b.setQueued(n.queued);
    b.setPages(n.pages);
    b.setPagesReserved(coarse ? pages_told(n) : n.pages_reserved);
    const auto& sums = coarse ? told_ : n;
    b.setPrefilled(sums.tokens_prefilled);
    b.setDecoded(sums.tokens_decoded);
    b.setPagesWiped(sums.pages_wiped);
    b.setArenas(uint32_t(count_arenas().alive));
    b.setRequests(uint32_t(requests_.size() - padding_));
    uint64_t resident = resident_bytes();
    b.setResidentBytes(coarse ? rounded_up(resident, metrics_gate::bytes_rounded) : resident);
    b.setStalledMs(uint32_t(std::min<uint64_t>((now - moved_ns_) / 1'000'000, UINT32_MAX)));
  }));
}

wire<schema::ControlAnswer> trace_answer(const clerk& by, const wire<schema::TraceAsk>& ask) {
  size_t most = limits::trace_records_max;
  auto bounded = unpack(ask, [&most](schema::TraceAsk::Reader r) {
    if (r.getMost() > 0) most = std::min<size_t>(most, r.getMost());
  });
  auto dump = by.trace().read();
  dump.keep_newest(bounded ? most : 0);
  return by.write<schema::ControlAnswer>(0, [&](schema::ControlAnswer::Builder b) {
    auto trace = b.initTrace(1)[0];
    trace.setLost(dump.lost);
    trace.setPid(uint32_t(::getpid()));
    trace.setNowNs(by.now_ns());
    trace.setMode(schema::TraceMode(by.trace().mode()));
    auto list = trace.initRecords(uint32_t(dump.records.size()));
    for (uint32_t i = 0; i < dump.records.size(); ++i) {
      const auto& r = dump.records[i];
      auto to = list[i];
      to.setAtNs(r.at_ns);
      to.setTrace(r.trace);
      to.setLamport(r.lamport);
      to.setSender(r.sender);
      to.setReceiver(r.receiver);
      to.setType(r.type);
      to.setBytes(r.bytes);
      to.setQueuedNs(r.queued_ns);
      to.setHandledNs(r.handled_ns);
    }
  });
}

caf::result<wire<schema::ControlAnswer>> engine_state::trace(const wire<schema::TraceAsk>& m) {
  return trace_answer(clerk_, m);
}

engine_actor::behavior_type run_engine(engine_actor::stateful_pointer<engine_state> self,
                                       engine_setup setup, directory_actor directory) {
  auto& state = self->state;
  be_quiet(self, [&state](const caf::error& why) { state.broke(why_ended(why)); });
  self->set_down_handler([&state](caf::scheduled_actor*, caf::down_msg& d) { state.down(d); });
  state.begin(self, std::move(setup), std::move(directory));
  return {
      [&state](const wire<schema::Submit>& m) { state.submit(m); },
      [&state](const wire<schema::Cancel>& m) { state.cancel(m); },
      [&state](const wire<schema::Release>& m) { state.release(m); },
      [&state](const wire<schema::Adopted>& m) { state.adopted(m); },
      [&state](const wire<schema::Drain>& m) { state.drain(m); },
      [&state](const wire<schema::Leave>&) { state.leave(); },
      [&state](const wire<schema::BeginEpoch>& m) { state.begin_epoch(m); },
      [&state](const wire<schema::TraceAsk>& m) { return state.trace(m); },
      [&state](tick) { state.on_tick(); },
  };
}

}  // namespace lethe
