#pragma once

#include <deque>
#include <unordered_map>

#include "actors/cluster/clerk.hpp"
#include "actors/sim/sim_engine.hpp"
#include "runtime/bhttp/response_reader.hpp"
#include "runtime/crypto/node_seal.hpp"

namespace lethe::sim {

/// What one client will ask, and how it will behave.
struct wish {
  enum class what : uint8_t { good, no_json, too_long };
  what kind = what::good;
  uint64_t id = 0;          // 0: the next number
  size_t sealed_bytes = 0;  // of the message that carries it, made up by blanks; 0: as it comes
  std::vector<uint32_t> prompt;
  uint32_t max_tokens = 8, choices = 1;
  bool stream = true;
  uint32_t leaves_after = UINT32_MAX;  // messages that it takes: 0: leaves before it is placed
  uint32_t pauses_after = UINT32_MAX;  // pieces
  uint64_t pause_ms = 0;
};
wish draw_wish(dice& chance, const next_token& words, uint32_t context);

/// The face of a simulated cluster with all of its clients. Knows the right answer to each request
/// and what may follow what.
class client_state {
 public:
  const char* name = "face";

  void begin(face_actor::stateful_pointer<client_state> self, ledger* facts,
             scheduler_actor scheduler, directory_actor directory, tracer* trace);
  void placed(const wire<schema::Placed>& m);
  void answer(const wire<schema::Answer>& m);
  void lost(const wire<schema::Lost>& m);
  void down(const caf::down_msg& d);
  void start_wishes();
  void on_tick();

  std::deque<wish> wishes;
  /// Is told of each piece of an answer.
  std::function<void(uint64_t id, size_t bytes)> heard;
  /// Requests that have not ended yet.
  size_t open() const { return open_.size() + wishes.size(); }
  uint64_t oldest() const { return open_.empty() ? 0 : open_.begin()->first; }
  uint32_t asked() const { return asked_; }

 private:
  struct exchange {
    wish what;
    uint32_t epoch = 0;
    std::optional<answer_opener> opener;
    std::optional<bhttp_response_reader> reader;
    std::pmr::string content;
    uint32_t pieces = 0, taken = 0, unread = 0;
    uint64_t resumes_ms = 0;
    request_actor answerer;
  };
  struct past {
    ending how;
    uint32_t losses = 0;
  };
  void seal(uint64_t id, exchange& x, schema::Placed::At::Reader at);
  template <class Actor>
  void cancel(uint64_t id, const Actor& at);
  bool leave_now(uint64_t id, exchange& x, uint32_t messages);
  void give_credit(uint64_t id, exchange& x);
  void end(uint64_t id, ending how);
  void judge(uint64_t id, exchange& x);
  ending judged(const exchange& x);
  uint64_t now_ms() const { return clerk_.now_ns() / 1'000'000; }

  face_actor::stateful_pointer<client_state> self_ = nullptr;
  ledger* facts_ = nullptr;
  std::unique_ptr<next_token> words_;
  clerk clerk_;
  scheduler_actor scheduler_;
  directory_actor directory_;
  std::map<uint64_t, exchange> open_;
  std::unordered_map<uint64_t, past> past_;
  std::map<uint16_t, uint32_t> epochs_;  // the latest of each engine
  uint32_t asked_ = 0, ticks_ = 0;
};

face_actor::behavior_type client(face_actor::stateful_pointer<client_state> self, ledger* facts,
                                 scheduler_actor scheduler, directory_actor directory,
                                 tracer* trace);

}  // namespace lethe::sim
