#pragma once

#include <map>
#include <unordered_map>

#include "actors/cluster/clerk.hpp"
#include "runtime/cluster/admission.hpp"
#include "runtime/cluster/measures.hpp"
#include "runtime/serve/node_door.hpp"

namespace lethe {

/// Admits requests and knows where each one is. Sees load, never content.
class scheduler_state {
 public:
  const char* name = "scheduler";

  void begin(scheduler_actor::stateful_pointer<scheduler_state> self, tracer* trace);
  void place(const wire<schema::Place>& m);
  void submit(const wire<schema::Submit>& m);
  void cancel(const wire<schema::Cancel>& m);
  void release(const wire<schema::Release>& m);
  void engine_said(const wire<schema::EngineState>& m);
  void load(const wire<schema::EngineLoad>& m);
  void drain(const wire<schema::Drain>& m);
  void leave(const wire<schema::Leave>& m);
  void node_key(const wire<schema::NodeKey>& m);
  caf::result<wire<schema::Loads>> loads(const wire<schema::LoadsAsk>& m);
  void down(const caf::down_msg& d);
  /// For the simulation's checks.
  const admission& desk() const { return desk_; }

 private:
  struct member {
    uint32_t epoch = 0;
    engine_actor handle;
    std::vector<std::byte> node;
    wire<schema::EngineLoad> load;
    uint64_t heard_ns = 0;  // when it last told its load, or came
  };
  void tell_lost(const std::vector<uint64_t>& requests);
  void let_go(uint16_t slot);
  uint32_t silent_ms(uint16_t slot, const member& of) const;
  void add(schema::EngineState::Reader r);
  std::optional<admission::place> admit(schema::Place::Reader r, schema::Refusal& why);
  void answer_place(schema::Place::Reader r, const face_actor& client);

  scheduler_actor::stateful_pointer<scheduler_state> self_ = nullptr;
  clerk clerk_;
  admission desk_;
  requests_took took_;
  std::unordered_map<uint16_t, member> members_;
  struct drawn {
    admission::place at;
    uint32_t roster = 0;
  };
  std::map<hash32, drawn> nodes_;  // by the id of each node's key, of this roster and the last ones
  std::unordered_map<uint64_t, face_actor> clients_;  // of each request
};

scheduler_actor::behavior_type scheduler(scheduler_actor::stateful_pointer<scheduler_state> self,
                                         tracer* trace);

}  // namespace lethe
