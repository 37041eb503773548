#pragma once

#include <unordered_map>

#include "actors/cluster/request_actor.hpp"
#include "runtime/batch/engine.hpp"
#include "runtime/cluster/cluster_metrics.hpp"

namespace lethe {

/// Bytes of weights read, and in all.
using load_progress = std::function<void(uint64_t, uint64_t)>;

/// Whom to tell how far an engine is while it opens.
struct opening {
  load_progress progress;
  std::function<void(uint16_t)> door;  // where its ranks come in
};

/// What an engine actor is told at its start. The simulation opens another kind of engine.
struct engine_setup {
  uint16_t slot = 0;
  uint32_t epoch = 0;
  api_rules rules;
  bool tokens_only = true;
  answer_shape shape;   // of answers to who seals for a roster's key
  answer_shape inside;  // of those to who lives in the cluster, and opens them itself
  tracer* trace = nullptr;
  uint32_t report_ms = 200;
  caf::actor_clock::time_point ticks_from;  // the wall clock's beginning, by the actors' clock
  std::function<result<opened_engine>(const opening&)> open;
};

class engine_state {
 public:
  const char* name = "engine";

  void begin(engine_actor::stateful_pointer<engine_state> self, engine_setup setup,
             directory_actor directory);
  void submit(const wire<schema::Submit>& m);
  void cancel(const wire<schema::Cancel>& m);
  void release(const wire<schema::Release>& m);
  void adopted(const wire<schema::Adopted>& m);
  void drain(const wire<schema::Drain>& m);
  void begin_epoch(const wire<schema::BeginEpoch>& m);
  void leave();
  void down(const caf::down_msg& d);
  void broke(const std::string& why);
  void on_tick();
  caf::result<wire<schema::ControlAnswer>> trace(const wire<schema::TraceAsk>& m);

 private:
  void say(schema::Phase phase, const std::string& reason = {}, uint64_t done = 0,
           uint64_t total = 0);
  opening told_of_opening();
  void say_lost(uint64_t request, schema::LossReason why, const face_actor& client,
                bytes_view refusal = {});
  void refuse(uint64_t request, schema::LossReason why, const face_actor& client,
              bytes_view refusal = {});
  void end_unknown(uint64_t request, schema::Outcome how);
  bool is_full() const;
  void report_load();
  void end_when_empty();
  uint64_t now_ms() const { return clerk_.now_ns() / 1'000'000; }
  engine& serving() const { return *engine_->opened.serving; }

  engine_actor::stateful_pointer<engine_state> self_ = nullptr;
  engine_setup setup_;
  clerk clerk_;
  directory_actor directory_;
  scheduler_actor scheduler_;  // once it has adopted us
  std::shared_ptr<running_engine> engine_;
  /// Known until it was released and its actor has ended, of which either may be heard first.
  struct running {
    request_actor actor;
    face_actor client;
    bool released = false;  // its answer may still be padded
    bool ended = false;
  };
  std::unordered_map<uint64_t, running> requests_;
  size_t padding_ = 0;  // of them: released
  told_together took_{1};
  engine_numbers told_;                // when it was last told what requests took
  uint16_t door_ = 0;                  // where its ranks come in
  uint64_t steps_ = 0, moved_ns_ = 0;  // the last progress seen
  bool draining_ = false;
};

engine_actor::behavior_type run_engine(engine_actor::stateful_pointer<engine_state> self,
                                       engine_setup setup, directory_actor directory);

/// The records of this process as a message.
wire<schema::ControlAnswer> trace_answer(const clerk& by, const wire<schema::TraceAsk>& ask);

}  // namespace lethe
