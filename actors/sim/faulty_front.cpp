#include "actors/sim/faulty_front.hpp"

#include "actors/cluster/clerk.hpp"

namespace lethe::sim {

namespace {

wire<schema::EngineState> with_epoch(const wire<schema::EngineState>& m, uint32_t epoch) {
  wire<schema::EngineState> changed;
  auto read = unpack(m, [&](schema::EngineState::Reader r) {
    capnp::MallocMessageBuilder message;
    message.setRoot(r);
    message.getRoot<schema::EngineState>().setEpoch(epoch);
    changed = {m.stamp, wire_detail::frame_of(message)};
  });
  check(bool(read));
  return changed;
}

}  // namespace

caf::behavior faulty_front(caf::event_based_actor* self, bug planted, uint32_t epoch_wanted,
                           directory_actor directory) {
  self->set_default_handler(refuse_quietly);
  auto engine = std::make_shared<engine_actor>();
  self->set_down_handler([self](caf::down_msg& d) { self->quit(d.reason); });
  auto pass = [self, engine](const auto& m) { self->delegate(*engine, m); };
  return {
      [=](const wire<schema::EngineState>& m) {
        if (!*engine) {
          *engine = sender_of<engine_actor>(self);
          self->monitor(*engine);
        }
        bool renamed = planted == bug::stale_epoch;
        self->send(directory, renamed ? with_epoch(m, epoch_wanted) : m);
      },
      [=](const wire<schema::Drain>& m) {
        if (planted != bug::stuck_drain) pass(m);
      },
      [=](const wire<schema::Submit>& m) { pass(m); },
      [=](const wire<schema::Cancel>& m) { pass(m); },
      [=](const wire<schema::Release>& m) { pass(m); },
      [=](const wire<schema::Adopted>& m) { pass(m); },
      [=](const wire<schema::Leave>& m) { pass(m); },
  };
}

}  // namespace lethe::sim
