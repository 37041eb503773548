#pragma once

#include <map>

#include "actors/cluster/clerk.hpp"
#include "runtime/cluster/cluster_plan.hpp"
#include "runtime/cluster/fleet.hpp"
#include "runtime/cluster/roster_turn.hpp"
#include "runtime/crypto/sha256.hpp"

namespace lethe {

/// What the directory has of the program that it runs in, and tells it.
struct directory_setup {
  hash32 program{};                                    // its digest: hosts run the same
  std::function<void()> down;                          // everything has left
  std::function<void(const cluster_layout&)> changed;  // other hosts than before, maybe
};

/// Knows what should run and what does, and gives the orders that bring one to the other.
class directory_state {
 public:
  const char* name = "directory";

  void begin(directory_actor::stateful_pointer<directory_state> self, cluster_plan plan,
             scheduler_actor scheduler, tracer* trace, directory_setup setup);
  caf::result<wire<schema::Joined>> join(const wire<schema::Join>& m);
  void engine_said(const wire<schema::EngineState>& m);
  void engine_ended(const wire<schema::EngineEnded>& m);
  void token_keys(const wire<schema::TokenKeys>& m);
  void node_key(const wire<schema::NodeKey>& m);
  void gateway_said(const wire<schema::ServiceState>& m) { gateway_state_ = m; }
  caf::result<wire<schema::ControlAnswer>> control(const wire<schema::ControlAsk>& m);
  void on_tick();
  void down(const caf::down_msg& d);
  /// For the simulation's checks.
  const fleet& known() const { return *fleet_; }
  scaling_rules scaling() const { return plan_->scaling(); }

 private:
  struct member {
    supervisor_actor handle;
    uint32_t pid = 0;
    uint16_t cores = 0;
    uint64_t memory = 0;
    bool leaves = false;  // it asked to
    bool told = false;    // that it may
  };
  struct known_engine {
    engine_actor handle;
    uint32_t epoch = 0;
    wire<schema::EngineState> state;
    uint16_t door = 0;  // where its ranks on other hosts were told to come in
  };
  using answer = wire<schema::ControlAnswer>;
  using promise = caf::typed_response_promise<answer>;

  fleet_time now() const { return clerk_.now_ns() / 1'000'000; }
  void start_ranks(uint16_t id, uint32_t epoch, uint16_t door);
  void end_without_ranks();
  void engine_lost(uint16_t id, uint32_t epoch, const std::string& why);
  void act();
  void obey(const fleet_order& order);
  void tell_leave();
  void tell_leave(const supervisor_actor& host);
  void let_hosts_go();
  void end_when_alone();
  void look_at_load();
  void scale_by_load(schema::Loads::Reader loads);
  cluster_load load_of(schema::Loads::Reader loads) const;
  void write_scaling(schema::ScalingStatus::Builder b) const;
  // directory_roster.cpp
  roster_turn::engines serving() const;
  void turn_roster();
  void ask_keys(const roster_turn::question& asks);
  void publish(const roster_turn::roster& whole);
  answer done() const;
  answer refused(const std::string& why) const;
  answer set_plan(result<void> changed);
  answer drain(uint16_t id);
  answer apply(schema::Config::Reader next, bool look);
  answer leave(schema::Down how);
  answer let_host_leave(const std::string& host);
  caf::result<answer> status();
  void write_hosts(schema::Status::Builder b);
  void write_status(schema::Status::Builder b, schema::Loads::Reader loads);
  /// Answers of all processes on their way to one asker.
  struct gathering {
    struct one {
      answer said;
      uint64_t asked_ns, heard_ns;
      std::string host;
      uint32_t pid;
    };
    promise reply;
    size_t waiting = 0;
    std::vector<one> heard;
  };
  caf::result<answer> traces();
  template <class Handle>
  void ask_traces(const std::shared_ptr<gathering>& all, const Handle& whom,
                  const std::string& host, uint32_t pid);
  void deliver_traces(gathering& all);

  directory_actor::stateful_pointer<directory_state> self_ = nullptr;
  clerk clerk_;
  std::optional<cluster_plan> plan_;
  std::optional<fleet> fleet_;
  std::optional<load_scaling> by_load_;
  fleet_time next_look_ = 0;
  scheduler_actor scheduler_;
  directory_setup setup_;
  std::map<std::string, member> hosts_;
  std::map<uint16_t, known_engine> engines_;
  /// Of engines that may not have noticed yet.
  struct ended_ranks {
    uint32_t epoch;
    std::string reason;
    fleet_time due;
  };
  std::map<uint16_t, ended_ranks> ended_ranks_;
  gateway_actor gateway_;  // once it wants rosters
  wire<schema::ServiceState> gateway_state_;
  roster_turn turn_;
  uint32_t grace_s_ = 0;
  std::vector<std::vector<std::byte>> token_keys_;
  uint64_t begun_ns_ = 0;
  fleet_time leave_by_ = 0, alone_by_ = 0;
  bool told_down_ = false, ended_ = false;
};

directory_actor::behavior_type directory(directory_actor::stateful_pointer<directory_state> self,
                                         cluster_plan plan, scheduler_actor scheduler,
                                         tracer* trace, directory_setup setup);

}  // namespace lethe
