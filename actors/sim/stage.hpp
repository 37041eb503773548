#pragma once

#include <caf/scheduler/test_coordinator.hpp>

#include "actors/cluster/directory.hpp"
#include "actors/cluster/scheduler.hpp"
#include "actors/sim/sim_client.hpp"
#include "actors/sim/sim_house.hpp"

namespace lethe::sim {

/// Digest of what all hosts run.
inline constexpr hash32 hosts_program{std::byte{7}};

struct stage_options {
  uint64_t seed = 0;
  bug planted = bug::none;
  uint32_t records = 64;       // that its tracer keeps
  uint64_t stop_once_in = 64;  // tokens; 0: an answer ends by its length only
  answer_shape shape = {};
};

/// A cluster's real actors in one thread under a fake clock, and what must hold after each of their
/// messages. Who acts next is its user's choice.
class stage {
 public:
  stage(const stage_options& options, std::shared_ptr<const served_model> model);
  ~stage();

  /// Scheduler, directory and face of a file; hosts join.
  void begin(schema::Config::Reader config);
  supervisor_actor join(const std::string& host, const std::shared_ptr<sim_house>& house);
  void order(const std::function<void(schema::ControlAsk::Builder)>& fill);

  uint64_t now_ns() const;
  uint64_t now_us() const { return now_ns() / 1000; }
  void advance_us(uint64_t us) { jobs->advance_time(std::chrono::microseconds(us)); }

  /// Who would act first.
  caf::scheduled_actor& first();
  /// It takes its next message; the checks follow.
  void run_first();

  // What must hold. Pages: after every turn of a step loop, in sim_core::turn.
  void check_step();
  /// When nobody has a request: what is left belongs to engines.
  void check_arenas_are_zero();
  bool empty();
  bool told_down() const { return told_down_; }
  bool good() const { return facts.violation.empty(); }
  std::string state() const;

  /// Ends all of them, and waits for it.
  void end(std::vector<supervisor_actor> supervisors);

  const admission& desk() const;
  const fleet& known_fleet() const;
  scaling_rules scaling() const;
  client_state& face_state() const;
  std::vector<sim_core*> living_cores() const;

  ledger facts;
  next_token words;
  std::unique_ptr<tracer> trace;
  std::unique_ptr<caf::actor_system_config> config;
  std::unique_ptr<caf::actor_system> sys;
  caf::scheduler::test_coordinator* jobs = nullptr;
  scheduler_actor to_scheduler;
  directory_actor to_directory;
  face_actor face;
  std::set<caf::actor_id> requests_alive;

 private:
  void meet(caf::scheduled_actor& who);
  void check_admission();
  void check_drains();
  void check_scaling();

  uint64_t arenas_before_;
  std::string running_;  // name of the actor that has the message in hand
  std::set<caf::actor_id> met_;
  bool told_down_ = false;
  std::map<uint16_t, uint64_t> idle_since_ms_;  // of drained engines: last seen busy
};

}  // namespace lethe::sim
