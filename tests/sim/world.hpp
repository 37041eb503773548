#pragma once

#include <caf/scheduler/test_coordinator.hpp>
#include <list>

#include "actors/cluster/directory.hpp"
#include "actors/cluster/scheduler.hpp"
#include "tests/sim/sim_client.hpp"
#include "tests/sim/sim_house.hpp"

namespace lethe::sim {

struct run_options {
  uint64_t seed = 0;
  bug planted = bug::none;
  bool trace = false;  // prints each message
};

struct run_report {
  std::string violation;  // empty: everything was as it must be
  uint64_t messages = 0;  // without actors' words to themselves
  uint64_t steps = 0;
  uint64_t digest = 0;  // of who got what in which order
  uint64_t virtual_ms = 0;
  uint32_t requests = 0;
  std::array<uint32_t, fault_names.size()> faults{};
  std::array<uint32_t, ending_names.size()> endings{};
};

/// A cluster of several hosts in one thread: its real actors, a fake clock, and chance in place of
/// everything that a network and an operating system decide.
class world {
 public:
  world(const run_options& options, std::shared_ptr<const served_model> model);
  ~world();
  run_report run();

 private:
  struct host {
    std::string name;
    std::shared_ptr<sim_house> house;
    supervisor_actor supervisor;
    bool up = false;
    uint64_t rejoins_ms = 0;
  };
  struct held_back {
    caf::resumable* job;
    uint64_t until_us;
  };

  // world.cpp: time and order
  void begin();
  void step();
  bool pick();
  void run_first();
  void describe(caf::scheduled_actor& who);
  void meet(caf::scheduled_actor& who);
  uint64_t now_us() const;
  void advance(uint64_t us);
  bool good() const { return facts_.violation.empty(); }
  template <class Done>
  void until(const char* what, uint64_t within_ms, Done&& done);
  // world_checks.cpp
  void check_step();
  void check_admission();
  void check_drains();
  void check_scaling();
  bool converged();
  std::string state() const;
  bool empty();
  void check_arenas_are_zero();
  // world_storm.cpp: what happens to the cluster
  cluster_config draw_config(bool first);
  void storm();
  void do_something();
  void one_fault();
  void order(std::function<void(schema::ControlAsk::Builder)> fill);
  void ask(uint64_t requests);
  void join(host& h);
  void kill(host& h);
  std::vector<sim_core*> living_cores() const;
  // world_scaling.cpp: engines by load
  std::string draw_scaling();
  void breathe();
  void fill_up(uint64_t requests);
  uint64_t capacity() const;
  void calm();
  void probe();
  void down();
  void end_actors();

  const admission& desk() const;
  const fleet& known_fleet() const;
  scaling_rules scaling() const;
  client_state& face_state() const;

  run_options options_;
  ledger facts_;
  next_token words_;
  uint64_t arenas_before_;
  std::unique_ptr<tracer> trace_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> sys_;
  caf::scheduler::test_coordinator* jobs_ = nullptr;
  std::vector<held_back> held_;
  std::string running_;  // name of the actor that has the message in hand
  std::set<caf::actor_id> requests_alive_, met_;
  scheduler_actor scheduler_;
  directory_actor directory_;
  face_actor face_;
  std::list<host> hosts_;
  engine_size size_;
  uint32_t context_ = 96, hosts_max_ = 0, page_tokens_ = 8, running_max_ = 4, queue_max_ = 12,
           queued_max_ = 4;
  bool told_down_ = false;
  std::map<uint16_t, uint64_t> idle_since_ms_;  // of drained engines: last seen busy
  run_report report_;
};

template <class Done>
void world::until(const char* what, uint64_t within_ms, Done&& done) {
  uint64_t last = now_us() + within_ms * 1000;
  while (good() && !done()) {
    step();
    if (now_us() > last)
      facts_.violated("{} within {} ms of virtual time; {}", what, within_ms, state());
  }
}

template <class State, class Handle>
State& state_of(const Handle& actor) {
  auto* at = dynamic_cast<typename Handle::template stateful_pointer<State>>(
      caf::actor_cast<caf::abstract_actor*>(actor));
  check(at != nullptr);
  return at->state;
}

}  // namespace lethe::sim
