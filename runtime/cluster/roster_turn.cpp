#include "runtime/cluster/roster_turn.hpp"

#include <algorithm>

namespace lethe {

void roster_turn::want(uint32_t published, uint64_t epoch_ms, uint64_t now) {
  bool said_now = phase_ == phase::publishing && published == published_ + 1;
  if (said_now) {
    listed_.clear();
    for (const auto& [slot, node] : heard_) listed_[slot] = asked_.at(slot);
  }
  published_ = published;
  epoch_ms_ = epoch_ms;
  if (phase_ == phase::publishing) phase_ = phase::idle;
  if (!ever_) begun_ms_ = now;
}

std::optional<roster_turn::question> roster_turn::due(const engines& ready, uint64_t now) {
  if (!wanted() || phase_ != phase::idle || ready.empty()) return {};
  bool changed = ready != listed_;
  bool late = now >= begun_ms_ + epoch_ms_;
  bool may = !ever_ || now >= begun_ms_ + apart_ms;
  if (!may || (!changed && !late)) return {};
  ever_ = true;
  begun_ms_ = now;
  phase_ = phase::asking;
  asked_ = ready;
  heard_.clear();
  return question{published_ + 1, ready};
}

void roster_turn::answered(uint16_t slot, uint32_t epoch, uint32_t roster,
                           std::vector<std::byte> node) {
  auto asked = asked_.find(slot);
  bool ours = phase_ == phase::asking && roster == published_ + 1 && asked != asked_.end() &&
              asked->second == epoch;
  if (ours) heard_[slot] = std::move(node);
}

std::optional<roster_turn::roster> roster_turn::complete(uint64_t now) {
  if (phase_ != phase::asking) return {};
  bool patient = now < begun_ms_ + patience_ms;
  if (heard_.size() < asked_.size() && patient) return {};
  phase_ = heard_.empty() ? phase::idle : phase::publishing;
  if (heard_.empty()) return {};
  roster whole{published_ + 1, {}};
  for (const auto& [slot, node] : heard_) whole.keys.push_back({slot, node});
  return whole;
}

}  // namespace lethe
