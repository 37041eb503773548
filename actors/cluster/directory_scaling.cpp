#include "actors/cluster/directory.hpp"

// How many engines the load asks for.
namespace lethe {

/// As often as engines say how full they are.
void directory_state::look_at_load() {
  if (!by_load_->rules().by_load() || fleet_->leaving() || now() < next_look_) return;
  next_look_ = now() + plan_->config().getHealth().getHeartbeatMs();
  auto ask = clerk_.write<schema::LoadsAsk>(0, [](auto) {});
  self_->request(scheduler_, std::chrono::seconds(2), ask)
      .then(
          [this](const wire<schema::Loads>& m) {
            clerk_.read(m, [this](schema::Loads::Reader loads) { scale_by_load(loads); });
            act();
          },
          [](caf::error&) {});  // the next look is soon
}

void directory_state::scale_by_load(schema::Loads::Reader loads) {
  if (!by_load_->rules().by_load() || fleet_->leaving()) return;
  uint16_t wanted = plan_->engines();
  uint16_t next = by_load_->look(load_of(loads), wanted, now());
  if (next == wanted) return;
  plan_->scale_by_load(next);
  fleet_->want(plan_->places(), now(), fleet::haste::none);
}

cluster_load directory_state::load_of(schema::Loads::Reader loads) const {
  cluster_load all;
  auto known = loads.getLoads();  // once: each reading counts against the frame's bound
  for (const auto& [id, e] : fleet_->engines()) {
    all.leaving += e.surplus;
    if (e.surplus || e.phase != schema::Phase::READY) continue;
    for (auto load : known) {
      if (load.getSlot() != id || load.getEpoch() != e.epoch) continue;
      ++all.engines;
      all.queued += load.getQueued();
      all.pages += load.getPages();
      all.reserved += load.getPagesReserved();
    }
  }
  return all;
}

void directory_state::write_scaling(schema::ScalingStatus::Builder b) const {
  const auto& rules = by_load_->rules();
  if (!rules.by_load()) return;
  b.setLeast(rules.least);
  b.setMost(rules.most);
  b.setNow(by_load_->now_text());
  b.setChanged(by_load_->changed_text(now()));
}

}  // namespace lethe
