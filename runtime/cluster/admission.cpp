#include "runtime/cluster/admission.hpp"

#include <algorithm>

namespace lethe {

std::vector<uint64_t> admission::engine_ready(uint16_t id, uint32_t epoch, uint32_t capacity) {
  std::vector<uint64_t> lost;
  if (auto old = engines_.find(id); old != engines_.end())
    lost = engine_lost(id, old->second.epoch);
  engines_[id] = {.epoch = epoch, .capacity = capacity};
  return lost;
}

void admission::engine_draining(uint16_t id, uint32_t epoch) {
  auto found = engines_.find(id);
  if (found != engines_.end() && found->second.epoch == epoch) found->second.draining = true;
}

std::vector<uint64_t> admission::engine_lost(uint16_t id, uint32_t epoch) {
  std::vector<uint64_t> lost;
  auto found = engines_.find(id);
  if (found == engines_.end() || found->second.epoch != epoch) return lost;
  engines_.erase(found);
  for (const auto& [request, at] : requests_)
    if (at.engine == id && at.epoch == epoch) lost.push_back(request);
  for (uint64_t request : lost) requests_.erase(request);
  total.failed += lost.size();
  return lost;
}

bool admission::ready() const {
  return !leaving_ &&
         std::ranges::any_of(engines_, [](const auto& e) { return !e.second.draining; });
}

std::optional<admission::place> admission::admit(uint64_t request, schema::Refusal& why) {
  std::pair<const uint16_t, engine>* best = nullptr;
  for (auto& entry : engines_) {
    auto& e = entry.second;
    if (e.draining || e.held >= e.capacity) continue;
    // held / capacity, compared without division
    if (!best ||
        uint64_t{e.held} * best->second.capacity < uint64_t{best->second.held} * e.capacity)
      best = &entry;
  }
  if (leaving_ || !best || requests_.contains(request)) {
    why = leaving_  ? schema::Refusal::LEAVING
          : ready() ? schema::Refusal::FULL
                    : schema::Refusal::NOT_READY;
    ++total.turned_away;
    return {};
  }
  return hold(request, *best);
}

std::optional<admission::place> admission::admit_at(uint64_t request, place chosen,
                                                    schema::Refusal& why) {
  auto found = engines_.find(chosen.engine);
  bool there = found != engines_.end() && found->second.epoch == chosen.epoch &&
               !found->second.draining && !requests_.contains(request);
  if (!leaving_ && there && found->second.held < found->second.capacity)
    return hold(request, *found);
  why = leaving_ ? schema::Refusal::LEAVING
        : there  ? schema::Refusal::FULL
                 : schema::Refusal::UNKNOWN_NODE;
  ++total.turned_away;
  return {};
}

std::optional<admission::place> admission::hold(uint64_t request,
                                                std::pair<const uint16_t, engine>& at) {
  ++at.second.held;
  ++total.admitted;
  place held{.engine = at.first, .epoch = at.second.epoch};
  requests_.emplace(request, held);
  return held;
}

std::optional<admission::place> admission::find(uint64_t request) const {
  auto found = requests_.find(request);
  return found == requests_.end() ? std::nullopt : std::optional(found->second);
}

bool admission::release(uint64_t request, place from, schema::Outcome outcome) {
  auto found = requests_.find(request);
  if (found == requests_.end() || found->second.engine != from.engine ||
      found->second.epoch != from.epoch)
    return false;
  requests_.erase(found);
  auto& e = engines_.at(from.engine);
  --e.held;
  switch (outcome) {
    case schema::Outcome::SERVED:
      ++total.served;
      break;
    case schema::Outcome::REFUSED:
      ++total.refused;
      break;
    case schema::Outcome::CANCELLED:
      ++total.cancelled;
      break;
    default:  // also what a newer engine may say
      ++total.failed;
  }
  return true;
}

}  // namespace lethe
