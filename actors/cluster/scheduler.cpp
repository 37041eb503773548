#include "actors/cluster/scheduler.hpp"

#include <algorithm>

namespace lethe {

namespace {

constexpr admission::place nobody{.engine = UINT16_MAX, .epoch = UINT32_MAX};

}  // namespace

void scheduler_state::begin(scheduler_actor::stateful_pointer<scheduler_state> self,
                            tracer* trace) {
  self_ = self;
  clerk_ = clerk(trace, actor_kind::scheduler);
}

void scheduler_state::place(const wire<schema::Place>& m) {
  clerk_.read(m, [&](schema::Place::Reader r) { answer_place(r, sender_of<face_actor>(self_)); });
}

/// Where a client drew its node nobody else will do.
std::optional<admission::place> scheduler_state::admit(schema::Place::Reader r,
                                                       schema::Refusal& why) {
  if (r.getNode().size() == 0) return desk_.admit(r.getRequest(), why);
  hash32 id{};
  auto wanted = bytes_of(r.getNode());
  if (wanted.size() == id.size()) std::ranges::copy(wanted, id.begin());
  auto found = nodes_.find(id);
  return desk_.admit_at(r.getRequest(), found == nodes_.end() ? nobody : found->second.at, why);
}

void scheduler_state::answer_place(schema::Place::Reader r, const face_actor& client) {
  schema::Refusal why{};
  uint64_t request = r.getRequest();
  auto at = admit(r, why);
  if (at) clients_[request] = client;
  self_->send(client, clerk_.write<schema::Placed>(request, [&](schema::Placed::Builder b) {
    b.setRequest(request);
    if (!at) {
      auto refused = b.initRefused();
      refused.setReason(why);
      refused.setRetryAfterS(1);
      return;
    }
    auto placed = b.initAt();
    placed.setEngine(at->engine);
    placed.setEpoch(at->epoch);
    placed.setNode(data_of(members_.at(at->engine).node));
  }));
}

/// How long a key opens its engine knows; here old ones only must not pile up.
void scheduler_state::node_key(const wire<schema::NodeKey>& m) {
  clerk_.read(m, [&](schema::NodeKey::Reader r) {
    auto node = node_public::from_bytes(bytes_of(r.getNode()));
    if (!node) return;
    std::erase_if(nodes_, [&](const auto& n) {
      return n.second.roster + node_door::keys_max < r.getRoster();
    });
    nodes_[node->id] = {{r.getSlot(), r.getEpoch()}, r.getRoster()};
  });
}

void scheduler_state::submit(const wire<schema::Submit>& m) {
  clerk_.read(m, [&](schema::Submit::Reader r) {
    auto at = desk_.find(r.getRequest());
    if (!at || at->engine != r.getEngine() || at->epoch != r.getEpoch()) {
      // Its engine was lost between place and submit; the client was told.
      return;
    }
    self_->delegate(members_.at(at->engine).handle, m);
  });
}

void scheduler_state::cancel(const wire<schema::Cancel>& m) {
  clerk_.read(m, [&](schema::Cancel::Reader r) {
    auto at = desk_.find(r.getRequest());
    if (!at) return;
    self_->send(members_.at(at->engine).handle, m);
  });
}

void scheduler_state::release(const wire<schema::Release>& m) {
  clerk_.read(m, [&](schema::Release::Reader r) {
    if (r.hasTook()) took_.add(requests_took::read(r.getTook()));
    admission::place from{r.getEngine(), r.getEpoch()};
    if (!desk_.release(r.getRequest(), from, r.getOutcome())) return;
    clients_.erase(r.getRequest());
    let_go(from.engine);
  });
}

void scheduler_state::engine_said(const wire<schema::EngineState>& m) {
  clerk_.read(m, [&](schema::EngineState::Reader r) {
    if (r.getPhase() == schema::Phase::READY) return add(r);
    if (r.getPhase() != schema::Phase::GONE && r.getPhase() != schema::Phase::FAILED) return;
    tell_lost(desk_.engine_lost(r.getSlot(), r.getEpoch()));
  });
}

void scheduler_state::add(schema::EngineState::Reader r) {
  uint16_t slot = r.getSlot();
  auto node = bytes_of(r.getNode());
  member fresh{
      .epoch = r.getEpoch(), .handle = sender_of<engine_actor>(self_), .heard_ns = clerk_.now_ns()};
  fresh.node.assign(node.begin(), node.end());
  tell_lost(desk_.engine_ready(slot, r.getEpoch(), r.getCapacity()));
  self_->monitor(fresh.handle);
  self_->send(fresh.handle, clerk_.write<schema::Adopted>(0, [&](schema::Adopted::Builder b) {
    b.setSlot(slot);
    b.setEpoch(fresh.epoch);
  }));
  members_[slot] = std::move(fresh);
}

void scheduler_state::load(const wire<schema::EngineLoad>& m) {
  clerk_.read(m, [&](schema::EngineLoad::Reader r) {
    auto found = members_.find(r.getSlot());
    if (found == members_.end() || found->second.epoch != r.getEpoch()) return;
    found->second.load = m;
    found->second.heard_ns = clerk_.now_ns();
  });
}

void scheduler_state::tell_lost(const std::vector<uint64_t>& requests) {
  for (uint64_t id : requests) {
    auto client = clients_.extract(id);
    if (client.empty()) continue;
    self_->send(client.mapped(), clerk_.write<schema::Lost>(id, [&](schema::Lost::Builder b) {
      b.setRequest(id);
      b.setReason(schema::LossReason::ENGINE_LOST);
    }));
  }
}

void scheduler_state::down(const caf::down_msg& d) {
  for (auto at = members_.begin(); at != members_.end(); ++at) {
    if (at->second.handle.address() != d.source) continue;
    tell_lost(desk_.engine_lost(at->first, at->second.epoch));
    members_.erase(at);
    return;
  }
}

void scheduler_state::drain(const wire<schema::Drain>& m) {
  clerk_.read(m, [&](schema::Drain::Reader r) {
    desk_.engine_draining(r.getSlot(), r.getEpoch());
    let_go(r.getSlot());
  });
}

/// A leaving engine is told only when nothing is placed there any more: a request whose seal is on
/// its way must find it.
void scheduler_state::let_go(uint16_t slot) {
  auto at = desk_.engines().find(slot);
  if (at == desk_.engines().end() || !at->second.draining || at->second.held > 0) return;
  self_->send(members_.at(slot).handle,
              clerk_.write<schema::Drain>(0, [&](schema::Drain::Builder b) {
                b.setSlot(slot);
                b.setEpoch(at->second.epoch);
              }));
}

void scheduler_state::leave(const wire<schema::Leave>& m) {
  clerk_.read(m, [&](schema::Leave::Reader) { desk_.leave(); });
}

/// What an engine says of itself is no word on one that says nothing.
uint32_t scheduler_state::silent_ms(uint16_t slot, const member& of) const {
  auto at = desk_.engines().find(slot);
  if (at == desk_.engines().end() || at->second.held == 0) return 0;
  return uint32_t(std::min<uint64_t>((clerk_.now_ns() - of.heard_ns) / 1'000'000, UINT32_MAX));
}

caf::result<wire<schema::Loads>> scheduler_state::loads(const wire<schema::LoadsAsk>&) {
  std::vector<std::pair<uint16_t, const member*>> known;
  for (const auto& [slot, one] : members_)
    if (!one.load.frame.empty() || silent_ms(slot, one) > 0) known.push_back({slot, &one});
  return clerk_.write<schema::Loads>(0, [&](schema::Loads::Builder b) {
    auto list = b.initLoads(uint32_t(known.size()));
    for (uint32_t i = 0; i < known.size(); ++i) {
      auto [slot, one] = known[i];
      list[i].setSlot(slot);
      list[i].setEpoch(one->epoch);
      if (!one->load.frame.empty()) {
        auto copied =
            unpack(one->load, [&](schema::EngineLoad::Reader r) { list.setWithCaveats(i, r); });
        if (!copied) list[i].setSlot(UINT16_MAX);  // nobody's
      }
      list[i].setSilentMs(silent_ms(slot, *one));
    }
    const auto& t = desk_.total;
    auto c = b.initCounts();
    c.setAdmitted(t.admitted);
    c.setServed(t.served);
    c.setRefused(t.refused);
    c.setCancelled(t.cancelled);
    c.setFailed(t.failed);
    c.setTurnedAway(t.turned_away);
    c.setPromptTokens(took_.prompt_tokens);
    c.setAnswerTokens(took_.answer_tokens);
    c.setArenasWiped(took_.arenas);
    c.setBytesWiped(took_.bytes_wiped);
    took_.of_served.write(b.initMeasures());
  });
}

scheduler_actor::behavior_type scheduler(scheduler_actor::stateful_pointer<scheduler_state> self,
                                         tracer* trace) {
  be_quiet(self);
  auto& state = self->state;
  state.begin(self, trace);
  self->set_down_handler([&state](caf::scheduled_actor*, caf::down_msg& d) { state.down(d); });
  return {
      [&state](const wire<schema::Place>& m) { state.place(m); },
      [&state](const wire<schema::Submit>& m) { state.submit(m); },
      [&state](const wire<schema::Cancel>& m) { state.cancel(m); },
      [&state](const wire<schema::Release>& m) { state.release(m); },
      [&state](const wire<schema::EngineState>& m) { state.engine_said(m); },
      [&state](const wire<schema::EngineLoad>& m) { state.load(m); },
      [&state](const wire<schema::Drain>& m) { state.drain(m); },
      [&state](const wire<schema::Leave>& m) { state.leave(m); },
      [&state](const wire<schema::NodeKey>& m) { state.node_key(m); },
      [&state](const wire<schema::LoadsAsk>& m) { return state.loads(m); },
  };
}

}  // namespace lethe
