#include "actors/cluster/supervisor.hpp"

#include "actors/cluster/engine_actor.hpp"

namespace lethe {

void supervisor_state::begin(supervisor_actor::stateful_pointer<supervisor_state> self,
                             supervisor_setup setup, directory_actor directory) {
  self_ = self;
  setup_ = std::move(setup);
  clerk_ = clerk(setup_.trace, actor_kind::supervisor);
  directory_ = std::move(directory);
  self_->monitor(directory_);
  auto join = clerk_.write<schema::Join>(0, [&](schema::Join::Builder b) {
    b.setHost(setup_.host);
    b.setPid(uint32_t(::getpid()));
    b.setCores(uint16_t(setup_.has.cores));
    b.setMemory(setup_.has.memory);
    b.setProgram(data_of(setup_.program));
  });
  self_->request(directory_, std::chrono::seconds(10), join)
      .then(
          [this](const wire<schema::Joined>& m) {
            auto why = schema::JoinRefusal::NO_MESSAGE;
            clerk_.read(m, [&](schema::Joined::Reader r) { why = r.getRefused(); });
            if (setup_.heard) setup_.heard(why);
            if (why != schema::JoinRefusal::NONE) self_->quit(caf::exit_reason::user_shutdown);
          },
          [this](caf::error&) { self_->quit(caf::exit_reason::remote_link_unreachable); });
}

void supervisor_state::tell_ended(uint16_t id, uint32_t epoch, const std::string& reason) {
  self_->send(directory_, clerk_.write<schema::EngineEnded>(0, [&](schema::EngineEnded::Builder b) {
    b.setSlot(id);
    b.setEpoch(epoch);
    b.setReason(reason);
  }));
}

/// Another of it that may still run here is replaced.
template <class Start>
void supervisor_state::begin_one(schema::EngineSpec::Reader spec, Start&& start) {
  uint16_t id = spec.getSlot();
  uint32_t epoch = spec.getEpoch();
  if (running_.contains(id)) setup_.house->kill(id);
  running_[id] = epoch;
  auto then = [self = supervisor_actor(self_), by = clerk_, id, epoch](const std::string& reason) {
    caf::anon_send(self, by.write<schema::EngineEnded>(0, [&](schema::EngineEnded::Builder b) {
      b.setSlot(id);
      b.setEpoch(epoch);
      b.setReason(reason);
    }));
  };
  auto started = start(id, then);
  if (started) return;
  running_.erase(id);
  tell_ended(id, epoch, started.why().text);
}

void supervisor_state::start(const wire<schema::StartEngine>& m) {
  clerk_.read(m, [&](schema::StartEngine::Reader r) {
    begin_one(r.getSpec(),
              [&](uint16_t id, auto then) { return setup_.house->start(m, id, directory_, then); });
  });
}

void supervisor_state::start_ranks(const wire<schema::StartRanks>& m) {
  clerk_.read(m, [&](schema::StartRanks::Reader r) {
    begin_one(r.getSpec(), [&](uint16_t id, auto then) -> result<void> {
      uint32_t rank = 0;
      for (auto place : r.getSpec().getPlaces()) {
        if (place.getHost() == setup_.host.c_str())
          return setup_.house->start_ranks(m, rank, id, then);
        ++rank;
      }
      return fail("host {} has no rank of engine {}", setup_.host, id);
    });
  });
}

void supervisor_state::kill(const wire<schema::KillEngine>& m) {
  clerk_.read(m, [&](schema::KillEngine::Reader r) {
    auto found = running_.find(r.getSlot());
    if (found != running_.end() && found->second == r.getEpoch())
      return setup_.house->kill(r.getSlot());
    tell_ended(r.getSlot(), r.getEpoch(), "it was not running");
  });
}

void supervisor_state::ended(const wire<schema::EngineEnded>& m) {
  clerk_.read(m, [&](schema::EngineEnded::Reader r) {
    auto found = running_.find(r.getSlot());
    if (found != running_.end() && found->second == r.getEpoch()) running_.erase(found);
    tell_ended(r.getSlot(), r.getEpoch(), r.getReason());
  });
}

void supervisor_state::leave(const wire<schema::Leave>& m) {
  clerk_.read(m, [&](schema::Leave::Reader) {
    for (const auto& [id, epoch] : running_) setup_.house->kill(id);
    if (setup_.left) setup_.left();
  });
}

/// What it would have us do is unknown from here on, and nobody reads our answers.
void supervisor_state::lost_directory() {
  for (const auto& [id, epoch] : running_) setup_.house->kill(id);
  self_->quit(caf::exit_reason::remote_link_unreachable);
}

supervisor_actor::behavior_type supervisor(
    supervisor_actor::stateful_pointer<supervisor_state> self, supervisor_setup setup,
    directory_actor directory) {
  be_quiet(self);
  auto& state = self->state;
  state.begin(self, std::move(setup), std::move(directory));
  self->set_down_handler(
      [&state](caf::scheduled_actor*, caf::down_msg&) { state.lost_directory(); });
  return {
      [&state](const wire<schema::StartEngine>& m) { state.start(m); },
      [&state](const wire<schema::StartRanks>& m) { state.start_ranks(m); },
      [&state](const wire<schema::KillEngine>& m) { state.kill(m); },
      [&state](const wire<schema::EngineEnded>& m) { state.ended(m); },
      [&state](const wire<schema::Leave>& m) { state.leave(m); },
      [&state](const wire<schema::TraceAsk>& m) { return trace_answer(state.by(), m); },
  };
}

}  // namespace lethe
