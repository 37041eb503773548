#pragma once

#include <unordered_map>

#include "actors/cluster/clerk.hpp"
#include "actors/cluster/credit_window.hpp"
#include "actors/cluster/face_pages.hpp"
#include "actors/cluster/face_queue.hpp"
#include "runtime/api/api_error.hpp"
#include "runtime/bhttp/response_reader.hpp"
#include "runtime/crypto/node_seal.hpp"

namespace lethe {

struct face_setup {
  std::shared_ptr<face_queue> queue;
  std::vector<std::string> api_keys;  // none: everyone who reaches the listener
  uint32_t api_listener = 0;          // index; requests of others may only look
  tracer* trace = nullptr;
};

/// The HTTP face of the lab profile: a client of the cluster that happens to live in it. It seals
/// what came in the clear to the engine that the scheduler names, and opens the answer.
class face_state {
 public:
  const char* name = "face";

  void begin(face_actor::stateful_pointer<face_state> self, face_setup setup,
             scheduler_actor scheduler, directory_actor directory);
  void read_queue();
  void placed(const wire<schema::Placed>& m);
  void answer(const wire<schema::Answer>& m);
  void lost(const wire<schema::Lost>& m);
  void on_tick();
  void fail_all();

 private:
  /// One HTTP request that waits for engines.
  struct exchange {
    http_request http;
    uint64_t request = 0;
    std::optional<answer_opener> opener;
    std::optional<bhttp_response_reader> reader;
    request_actor answerer;
    credit_window credit;
    uint64_t asked_ns = 0;
    std::optional<uint64_t> to_pass;  // bytes of content, where their number was told
    bool placed = false, begun = false, streams = false;
  };

  void arrived(http_request r);
  void look(const http_request& r);
  void place(http_request r);
  api_refusal check_key(const http_request& r) const;
  void left(uint64_t http_id);
  void drained(uint64_t http_id, size_t bytes);
  void seal(exchange& x, schema::Placed::At::Reader at);
  void open(exchange& x, bytes_view sealed, bool last);
  void begin_answer(exchange& x);
  void give_credit(exchange& x);
  void fail(exchange& x, const api_error& why);
  void drop(uint64_t http_id, bool cancel);
  exchange* find(uint64_t request);
  void refuse(uint64_t http_id, const api_error& why, uint64_t request = 0);

  face_actor::stateful_pointer<face_state> self_ = nullptr;
  face_setup setup_;
  clerk clerk_;
  metrics_gate gate_;
  http_server* server_ = nullptr;  // known with its first request
  bool broken_ = false;            // what it stands before is gone
  scheduler_actor scheduler_;
  directory_actor directory_;
  std::unordered_map<uint64_t, exchange> exchanges_;  // by HTTP's id
  std::unordered_map<uint64_t, uint64_t> http_of_;    // by request
};

face_actor::behavior_type face(face_actor::stateful_pointer<face_state> self, face_setup setup,
                               scheduler_actor scheduler, directory_actor directory);

}  // namespace lethe
