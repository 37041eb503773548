#pragma once

#include <map>

#include "actors/cluster/clerk.hpp"
#include "runtime/config/layout.hpp"
#include "runtime/crypto/sha256.hpp"

namespace lethe {

/// Where engines of a host run: threads of this process, processes of their own, or actors of a
/// simulation. Each start ends in exactly one call of `ended`, from any thread.
class engine_house {
 public:
  virtual ~engine_house() = default;
  using ended = std::function<void(const std::string& reason)>;
  virtual result<void> start(const wire<schema::StartEngine>& order, uint16_t id,
                             directory_actor directory, ended then) = 0;
  /// Of its ranks those that are here; the engine is elsewhere. `first` is the first of them.
  virtual result<void> start_ranks(const wire<schema::StartRanks>& order, uint32_t first,
                                   uint16_t id, ended then) = 0;
  /// Ends the engine, or its ranks, at once.
  virtual void kill(uint16_t id) = 0;
};

struct supervisor_setup {
  std::string host;
  machine has;
  hash32 program{};  // digest of what runs here
  std::shared_ptr<engine_house> house;
  tracer* trace = nullptr;
  std::function<void()> left;                          // the directory said: finish
  std::function<void(schema::JoinRefusal why)> heard;  // whether it will have us
};

/// One per host: starts, watches and ends the engines there.
class supervisor_state {
 public:
  const char* name = "supervisor";

  void begin(supervisor_actor::stateful_pointer<supervisor_state> self, supervisor_setup setup,
             directory_actor directory);
  void start(const wire<schema::StartEngine>& m);
  void start_ranks(const wire<schema::StartRanks>& m);
  void kill(const wire<schema::KillEngine>& m);
  void ended(const wire<schema::EngineEnded>& m);
  void leave(const wire<schema::Leave>& m);
  void lost_directory();
  const clerk& by() const { return clerk_; }

 private:
  template <class Start>
  void begin_one(schema::EngineSpec::Reader spec, Start&& start);
  void tell_ended(uint16_t id, uint32_t epoch, const std::string& reason);

  supervisor_actor::stateful_pointer<supervisor_state> self_ = nullptr;
  supervisor_setup setup_;
  clerk clerk_;
  directory_actor directory_;
  std::map<uint16_t, uint32_t> running_;  // epoch of each engine, or of what it has here
};

supervisor_actor::behavior_type supervisor(
    supervisor_actor::stateful_pointer<supervisor_state> self, supervisor_setup setup,
    directory_actor directory);

}  // namespace lethe
