// What the directory says when it is asked: its status, and the records of all processes.
#include "actors/cluster/directory.hpp"
#include "runtime/cluster/cluster_metrics.hpp"
#include "runtime/trace/trace_limits.hpp"

#include <set>

namespace lethe {

caf::result<wire<schema::ControlAnswer>> directory_state::status() {
  auto reply = self_->make_response_promise<answer>();
  auto ask = clerk_.write<schema::LoadsAsk>(0, [](auto) {});
  self_->request(scheduler_, std::chrono::seconds(2), ask)
      .then(
          [this, reply](const wire<schema::Loads>& m) mutable {
            answer said = refused("the scheduler's answer was no message");
            clerk_.read(m, [&](schema::Loads::Reader loads) {
              said = clerk_.write<schema::ControlAnswer>(0, [&](schema::ControlAnswer::Builder b) {
                write_status(b.initStatus(), loads);
              });
            });
            reply.deliver(said);
          },
          [this, reply](caf::error&) mutable {
            reply.deliver(refused("the scheduler does not answer"));
          });
  return reply;
}

namespace {

void write_engine(schema::EngineStatus::Builder b, const engine_instance& e, fleet_time now) {
  b.setSlot(e.id);
  const auto hosts = e.place.hosts();
  b.setHost(hosts[0]);
  auto others = b.initOthers(uint32_t(hosts.size() - 1));
  for (uint32_t i = 0; i < others.size(); ++i) others.set(i, hosts[i + 1]);
  auto devices = b.initDevices(uint32_t(e.place.devices.size()));
  for (uint32_t i = 0; i < devices.size(); ++i) {
    const auto& place = e.place;
    const bool leads = place.ranks.empty() || place.ranks[i] == place.host;
    devices.set(i, leads ? place.devices[i] : place.ranks[i] + ":" + place.devices[i]);
  }
  b.setArithmetic(e.place.arithmetic);
  b.setRestarts(uint16_t(std::min<uint32_t>(e.restarts, UINT16_MAX)));
  b.setRetryMs(e.phase == schema::Phase::WAITING && e.retry_at > now ? uint32_t(e.retry_at - now)
                                                                     : 0);
}

}  // namespace

/// Those of the file, and those that it names no more but that are still here.
void directory_state::write_hosts(schema::Status::Builder b) {
  std::map<std::string, std::string> addresses;
  std::vector<std::string> names;
  for (const auto& h : plan_->layout().hosts) {
    names.push_back(h.name);
    addresses[h.name] = h.address;
  }
  for (const auto& [host, one] : hosts_)
    if (!plan_->knows_host(host)) names.push_back(host);
  auto hosts = b.initHosts(uint32_t(names.size()));
  for (uint32_t i = 0; i < names.size(); ++i) {
    auto h = hosts[i];
    h.setName(names[i]);
    h.setAddress(addresses[names[i]]);
    auto joined = hosts_.find(names[i]);
    if (joined == hosts_.end()) continue;
    h.setJoined(true);
    h.setLeaving(joined->second.leaves || !plan_->knows_host(names[i]));
    h.setPid(joined->second.pid);
    h.setCores(joined->second.cores);
    h.setMemory(joined->second.memory);
  }
}

void directory_state::write_status(schema::Status::Builder b, schema::Loads::Reader loads) {
  auto c = plan_->config();
  b.setCluster(c.getName());
  b.setProfile(c.getProfile());
  b.setUpMs((clerk_.now_ns() - begun_ns_) / 1'000'000);
  b.setWanted(uint16_t(fleet_->wanted().size()));
  b.setLeaving(fleet_->leaving());
  b.setSilentAfterMs(silent_after_ms(c.getHealth().getHeartbeatMs()));
  b.setCounts(loads.getCounts());
  b.setMeasures(loads.getMeasures());
  write_scaling(b.initScaling());
  if (!gateway_state_.frame.empty()) {
    auto services = b.initServices(1);
    auto copied = unpack(gateway_state_,
                         [&](schema::ServiceState::Reader r) { services.setWithCaveats(0, r); });
    if (!copied) services[0].setNote("it tells what is no message");
  }
  write_hosts(b);
  auto known_loads = loads.getLoads();  // once: each reading counts against the frame's bound
  auto engines = b.initEngines(uint32_t(fleet_->engines().size()));
  uint32_t i = 0;
  for (const auto& [id, e] : fleet_->engines()) {
    auto to = engines[i++];
    write_engine(to, e, now());
    to.setTensor(c.getEngines().getTensor());
    to.setPipeline(c.getEngines().getPipeline());
    if (auto known = engines_.find(id); known != engines_.end() && known->second.epoch == e.epoch) {
      // A copy follows every pointer, also those that nobody has read before.
      auto copied =
          unpack(known->second.state, [&](schema::EngineState::Reader r) { to.setState(r); });
      if (!copied) to.initState().setReason("it tells what is no message");
      if (to.getState().getPhase() == schema::Phase::READY) b.setModel(to.getState().getModel());
    }
    to.getState().setPhase(e.phase);
    to.getState().setEpoch(e.epoch);
    if (!e.reason.empty()) to.getState().setReason(e.reason);
    for (auto load : known_loads)
      if (load.getSlot() == id && load.getEpoch() == e.epoch) to.setLoad(load);
  }
}

caf::result<wire<schema::ControlAnswer>> directory_state::traces() {
  auto all = std::make_shared<gathering>();
  all->reply = self_->make_response_promise<answer>();
  // One actor of each process answers for all of it. Containers may have the same pids.
  std::set<std::pair<uint32_t, std::string>> asked;
  for (const auto& [host, one] : hosts_)
    if (asked.emplace(one.pid, host).second) ask_traces(all, one.handle, host, one.pid);
  for (const auto& [id, known] : engines_) {
    uint32_t pid = 0;
    auto read = unpack(known.state, [&](schema::EngineState::Reader r) { pid = r.getPid(); });
    auto instance = fleet_->engines().find(id);
    if (!read || instance == fleet_->engines().end() || !instance->second.alive()) continue;
    const auto& host = instance->second.place.host;
    if (asked.emplace(pid, host).second) ask_traces(all, known.handle, host, pid);
  }
  if (all->waiting == 0) deliver_traces(*all);
  return all->reply;
}

/// The process's clock was read about half way between asking and hearing.
template <class Handle>
void directory_state::ask_traces(const std::shared_ptr<gathering>& all, const Handle& whom,
                                 const std::string& host, uint32_t pid) {
  uint64_t asked = clerk_.now_ns();
  ++all->waiting;
  auto ask = clerk_.write<schema::TraceAsk>(0, [this](schema::TraceAsk::Builder b) {
    // Together they must fit one answer.
    b.setMost(uint32_t(limits::trace_records_max / (hosts_.size() + engines_.size())));
  });
  self_->request(whom, std::chrono::seconds(5), ask)
      .then(
          [this, all, asked, host, pid](const answer& m) {
            all->heard.push_back({m, asked, clerk_.now_ns(), host, pid});
            if (--all->waiting == 0) deliver_traces(*all);
          },
          [this, all, asked, host, pid](caf::error&) {
            // It stays silent, and shows.
            all->heard.push_back({{}, asked, clerk_.now_ns(), host, pid});
            if (--all->waiting == 0) deliver_traces(*all);
          });
}

void directory_state::deliver_traces(gathering& all) {
  all.reply.deliver(clerk_.write<schema::ControlAnswer>(0, [&](schema::ControlAnswer::Builder b) {
    auto list = b.initTrace(uint32_t(all.heard.size()));
    for (uint32_t i = 0; i < all.heard.size(); ++i) {
      const auto& h = all.heard[i];
      auto read = unpack(h.said, [&](schema::ControlAnswer::Reader r) {
        if (!r.isTrace() || r.getTrace().size() != 1) return;
        list.setWithCaveats(i, r.getTrace()[0]);
        list[i].setOffsetNs(int64_t(h.asked_ns / 2 + h.heard_ns / 2) - int64_t(list[i].getNowNs()));
        list[i].setErrorNs((h.heard_ns - h.asked_ns) / 2);
      });
      if (!read) list[i].setNowNs(0);
      list[i].setPid(h.pid);
      list[i].setHost(h.host);
    }
  }));
}

}  // namespace lethe
