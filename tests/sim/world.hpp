#pragma once

#include <list>

#include "actors/sim/stage.hpp"
#include "tests/sim/links.hpp"

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
  uint32_t engines = 0;  // at once
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
  /// Of a host's link. A long one is noticed at both ends, each at its own time; 0: never, or done.
  struct outage {
    uint64_t until_us = 0, leader_notices_us = 0, host_notices_us = 0;
    bool lost = false;  // one end gave up
    std::vector<caf::actor_addr> lost_actors;
  };
  struct host {
    std::string name;
    std::shared_ptr<sim_house> house;
    supervisor_actor supervisor;
    bool up = false;
    uint64_t rejoins_ms = 0;
    std::optional<outage> out;
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
  bool good() const { return on_.good(); }
  template <class Done>
  void until(const char* what, uint64_t within_ms, Done&& done);
  bool converged();
  std::string state() const;
  // world_storm.cpp: what happens to the cluster
  cluster_config draw_config(bool first);
  void storm();
  void do_something();
  void one_fault();
  void ask(uint64_t requests);
  void join(host& h);
  void kill(host& h);
  // world_links.cpp: hosts that are cut off
  void cut_off(host& h);
  void look_at_link(host& h);
  void tell_lost(host& h);
  void mend_links();
  // world_scaling.cpp: engines by load
  std::string draw_scaling();
  void breathe();
  void fill_up(uint64_t requests);
  uint64_t capacity() const;
  void calm();
  void probe();
  void down();
  void end_actors();

  run_options options_;
  stage on_;
  ledger& facts_ = on_.facts;
  std::vector<held_back> held_;
  std::list<host> hosts_;
  links links_{facts_.cut};
  engine_size size_;
  uint32_t context_ = 96, hosts_max_ = 0, engines_max_ = 4, page_tokens_ = 8, running_max_ = 4,
           queue_max_ = 8, queued_max_ = 4;
  run_report report_;
};

template <class Done>
void world::until(const char* what, uint64_t within_ms, Done&& done) {
  uint64_t last = on_.now_us() + within_ms * 1000;
  while (good() && !done()) {
    step();
    if (on_.now_us() > last)
      facts_.violated("{} within {} ms of virtual time; {}", what, within_ms, state());
  }
}

}  // namespace lethe::sim
