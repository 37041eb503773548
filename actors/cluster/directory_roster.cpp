#include "actors/cluster/directory.hpp"

namespace lethe {

void directory_state::token_keys(const wire<schema::TokenKeys>& m) {
  clerk_.read(m, [&](schema::TokenKeys::Reader r) {
    gateway_ = sender_of<gateway_actor>(self_);
    grace_s_ = r.getGraceS();
    token_keys_.clear();
    for (auto key : r.getKeys()) {
      auto bytes = bytes_of(key);
      token_keys_.emplace_back(bytes.begin(), bytes.end());
    }
    turn_.want(r.getRoster(), uint64_t{r.getEpochS()} * 1000, now());
  });
}

void directory_state::node_key(const wire<schema::NodeKey>& m) {
  clerk_.read(m, [&](schema::NodeKey::Reader r) {
    auto node = bytes_of(r.getNode());
    turn_.answered(r.getSlot(), r.getEpoch(), r.getRoster(), {node.begin(), node.end()});
  });
  turn_roster();
}

roster_turn::engines directory_state::serving() const {
  roster_turn::engines ready;
  for (const auto& [slot, one] : fleet_->engines())
    if (one.phase == schema::Phase::READY && engines_.contains(slot)) ready[slot] = one.epoch;
  return ready;
}

void directory_state::turn_roster() {
  if (!turn_.wanted() || fleet_->leaving()) return;
  if (auto asks = turn_.due(serving(), now())) ask_keys(*asks);
  if (auto whole = turn_.complete(now())) publish(*whole);
}

void directory_state::ask_keys(const roster_turn::question& asks) {
  for (const auto& [slot, epoch] : asks.whom)
    self_->send(engines_.at(slot).handle,
                clerk_.write<schema::BeginEpoch>(0, [&](schema::BeginEpoch::Builder b) {
                  b.setSlot(slot);
                  b.setEpoch(epoch);
                  b.setRoster(asks.roster);
                  b.setGraceS(grace_s_);
                  auto keys = b.initTokenKeys(uint32_t(token_keys_.size()));
                  for (uint32_t i = 0; i < keys.size(); ++i) keys.set(i, data_of(token_keys_[i]));
                }));
}

void directory_state::publish(const roster_turn::roster& whole) {
  self_->send(gateway_, clerk_.write<schema::Publish>(0, [&](schema::Publish::Builder b) {
    b.setRoster(whole.number);
    auto nodes = b.initNodes(uint32_t(whole.keys.size()));
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      nodes[i].setSlot(whole.keys[i].slot);
      nodes[i].setNode(data_of(whole.keys[i].node));
      auto known = engines_.find(whole.keys[i].slot);
      if (known == engines_.end()) continue;  // it has just left: no capacity, nobody draws it
      auto said =
          unpack(known->second.state, [to = nodes[i]](schema::EngineState::Reader r) mutable {
            to.setCapacity(r.getCapacity());
            to.setModel(r.getModel());
          });
      check(bool(said));
    }
  }));
}

}  // namespace lethe
