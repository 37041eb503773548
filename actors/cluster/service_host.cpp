#include "actors/cluster/service_host.hpp"

namespace lethe {

namespace {

constexpr std::chrono::milliseconds tick_every{20};

}  // namespace

void service_state::begin(service_actor::stateful_pointer<service_state> self,
                          service_setup setup) {
  self_ = self;
  setup_ = std::move(setup);
  clerk_ = clerk(setup_.trace, actor_kind::service);
  begun_ns_ = clerk_.now_ns();
}

caf::result<wire<schema::ControlAnswer>> service_state::control(const wire<schema::ControlAsk>& m) {
  auto how = schema::ControlAsk::STATUS;
  auto down = schema::Down::DRAIN;
  std::vector<std::string> changed;
  clerk_.read(m, [&](schema::ControlAsk::Reader r) {
    how = r.which();
    if (r.isDown()) down = r.getDown();
    if (r.isApply()) changed = config_differences(setup_.config->get(), r.getApply().getConfig());
  });
  if (how == schema::ControlAsk::DOWN) leave(down);
  return clerk_.write<schema::ControlAnswer>(0, [&](schema::ControlAnswer::Builder b) {
    if (how == schema::ControlAsk::STATUS)
      write_status(b.initStatus());
    else if (how == schema::ControlAsk::DOWN)
      b.setDone();
    else if (how == schema::ControlAsk::APPLY && changed.empty())
      b.initChanges(0);
    else if (how == schema::ControlAsk::APPLY)
      b.setRefused(fmt::format("{}; this can't change while it runs: lethe down, then lethe up",
                               fmt::join(changed, "; ")));
    else
      b.setRefused(
          fmt::format("{} serves as {}: it has neither engines nor traces; status and down are "
                      "what it knows",
                      setup_.name, setup_.serves->role()));
  });
}

void service_state::write_status(schema::Status::Builder b) const {
  b.setCluster(setup_.name);
  b.setUpMs((clerk_.now_ns() - begun_ns_) / 1'000'000);
  b.setLeaving(leave_by_ns_ > 0);
  auto one = b.initServices(1)[0];
  one.setRole(setup_.serves->role());
  one.setNote(setup_.serves->note());
  auto counts = setup_.serves->counts();
  auto list = one.initCounts(uint32_t(counts.size()));
  for (uint32_t i = 0; i < counts.size(); ++i) {
    list[i].setName(counts[i].first);
    list[i].setNumber(counts[i].second);
  }
}

void service_state::leave(schema::Down how) {
  setup_.serves->stop_accepting();
  uint64_t more_ns = how == schema::Down::NOW ? 0 : uint64_t{setup_.drain_ms} * 1'000'000;
  bool first = leave_by_ns_ == 0;
  leave_by_ns_ = clerk_.now_ns() + more_ns;
  if (first) on_tick();
}

void service_state::on_tick() {
  if (setup_.serves->open_exchanges() == 0 || clerk_.now_ns() >= leave_by_ns_) return setup_.down();
  self_->delayed_send(service_actor(self_), tick_every, tick::value);
}

service_actor::behavior_type service_host(service_actor::stateful_pointer<service_state> self,
                                          service_setup setup) {
  be_quiet(self);
  auto& state = self->state;
  state.begin(self, std::move(setup));
  return {
      [&state](const wire<schema::ControlAsk>& m) { return state.control(m); },
      [&state](tick) { state.on_tick(); },
  };
}

}  // namespace lethe
