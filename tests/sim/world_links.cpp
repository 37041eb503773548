#include "tests/sim/world.hpp"

namespace lethe::sim {

namespace {

// Of the file, which says nothing else: health.lost_after_ms, and a heartbeat.
constexpr uint64_t lost_after_us = 1'000'000, heartbeat_us = 200'000;

}  // namespace

/// For less than it takes to count as lost, when all that was said comes late; or for longer.
void world::cut_off(host& h) {
  auto& chance = facts_.chance;
  uint64_t now = on_.now_us();
  links_.cut(h.name, on_.jobs->jobs);
  if (chance.once_in(2)) {
    h.out = outage{.until_us = now + chance.between(20'000, lost_after_us - heartbeat_us)};
    return facts_.happened(fault::link_slow);
  }
  auto noticed = [&] { return now + lost_after_us + chance.below(heartbeat_us); };
  h.out = outage{.leader_notices_us = noticed(), .host_notices_us = noticed()};
  h.out->until_us = now + lost_after_us + heartbeat_us + chance.below(2'000'000);
  facts_.happened(fault::host_cut_off);
}

/// As a node is told that another is gone: of each of its actors by itself.
void world::tell_lost(host& h) {
  const caf::actor leaders[] = {caf::actor_cast<caf::actor>(on_.to_scheduler),
                                caf::actor_cast<caf::actor>(on_.to_directory),
                                caf::actor_cast<caf::actor>(on_.face)};
  for (const auto& address : h.out->lost_actors)
    for (const auto& one : leaders)
      caf::send_as(one, one, caf::down_msg{address, caf::exit_reason::remote_link_unreachable});
}

void world::look_at_link(host& h) {
  auto& out = *h.out;
  auto is_due = [now = on_.now_us()](uint64_t& at_us) {
    bool due = at_us != 0 && now >= at_us;
    if (due) at_us = 0;
    return due;
  };
  bool leader = is_due(out.leader_notices_us), host = is_due(out.host_notices_us);
  if ((leader || host) && !std::exchange(out.lost, true)) out.lost_actors = links_.sever(h.name);
  if (leader) tell_lost(h);
  if (host && h.up) {
    auto own = caf::actor_cast<caf::actor>(h.supervisor);
    caf::send_as(
        own, own,
        caf::down_msg{on_.to_directory.address(), caf::exit_reason::remote_link_unreachable});
  }
  if (on_.now_us() < out.until_us) return;
  links_.mend(h.name, on_.jobs->jobs);
  h.out.reset();
}

/// What one end has given up the other does, too; where none has, nothing was lost.
void world::mend_links() {
  for (auto& h : hosts_) {
    if (!h.out) continue;
    auto& out = *h.out;
    for (uint64_t* notices : {&out.leader_notices_us, &out.host_notices_us})
      if (*notices != 0) *notices = out.lost ? 1 : 0;
    out.until_us = 0;
    look_at_link(h);
  }
}

}  // namespace lethe::sim
