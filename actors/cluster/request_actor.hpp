#pragma once

#include "actors/cluster/clerk.hpp"
#include "runtime/serve/node_door.hpp"

namespace lethe {

/// An engine that serves, whatever computes in it.
struct opened_engine {
  std::shared_ptr<const served_model> model;
  std::unique_ptr<engine> serving;
  hash32 release{};  // of the program that opened it
};

/// Lives as long as the engine's actor and the last of its requests.
struct running_engine {
  running_engine(opened_engine what, std::shared_ptr<const sealed_service> inside, api_service api,
                 answer_shape shape, bool only)
      : opened(std::move(what)),
        service(std::move(inside)),
        door(std::move(api), opened.release, limits::seals_remembered_max, shape),
        tokens_only(only) {}

  opened_engine opened;
  std::shared_ptr<const sealed_service> service;  // for who lives in the cluster
  node_door door;                                 // for everyone else
  bool tokens_only;
};

/// What a request knows of its engine.
struct request_desk {
  std::shared_ptr<const running_engine> engine;
  tracer* trace = nullptr;
  uint16_t slot = 0;
  uint32_t epoch = 0;
  caf::actor_clock::time_point ticks_from;  // the same instant at all nodes
};

/// Owns one request's arena from its seal to its wipe. From there on it only pads the answer: the
/// engine has counted it out, and it needs nothing of it.
class request_state {
 public:
  const char* name = "request";

  void begin(request_actor::stateful_pointer<request_state> self, const request_desk& desk,
             uint64_t id, const wire<schema::Submit>& submit, face_actor client,
             engine_actor engine);
  void stir();
  void credit(const wire<schema::Credit>& m);
  void cancel();
  void engine_lost();
  void on_tick();
  bool has_said() const { return number_ > 0; }

 private:
  using clock = caf::actor_clock;

  result<std::unique_ptr<sealed_call>> open(schema::Submit::Reader r, schema::LossReason& why);
  void send_pieces();
  void tell_lost(schema::LossReason why);
  bool send_piece();
  void look_on();
  void wait_for_tick();
  void release(schema::Outcome outcome);
  void end(caf::error why = {});

  request_actor::stateful_pointer<request_state> self_ = nullptr;
  request_desk desk_;
  clerk clerk_;
  uint64_t id_ = 0;
  face_actor client_;
  engine_actor engine_;
  std::shared_ptr<class stirrer> stirrer_;
  std::unique_ptr<sealed_call> call_;
  std::optional<signed_refusal> refusal_;    // that there is no room
  std::chrono::milliseconds tick_{0};        // zero: pieces leave when there are some
  clock::time_point due_;                    // the next tick
  uint32_t window_ = limits::answer_window;  // pieces that may be sent
  uint32_t number_ = 0;
  uint64_t begun_ns_ = 0;
  bool left_ = false;  // nobody reads: the client left, or the engine is lost
  bool released_ = false;
};

request_actor::behavior_type run_request(request_actor::stateful_pointer<request_state> self,
                                         request_desk desk, uint64_t id,
                                         wire<schema::Submit> submit, face_actor client,
                                         engine_actor engine);

}  // namespace lethe
