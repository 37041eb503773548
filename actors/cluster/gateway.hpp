#pragma once

#include <unordered_map>

#include "actors/cluster/clerk.hpp"
#include "actors/cluster/credit_window.hpp"
#include "actors/cluster/face_queue.hpp"
#include "runtime/base/unix_time.hpp"
#include "runtime/crypto/ohttp_request.hpp"
#include "runtime/gateway/outer_answer.hpp"
#include "runtime/http/http_client.hpp"
#include "runtime/publish/outside_witnesses.hpp"
#include "runtime/store/spend_store.hpp"

namespace lethe {

/// Of a key of the outer layer, until the next one follows it.
inline constexpr uint64_t key_life_s = 3600;

/// Where the issuer is, and what says that we are its gateway.
struct issuer_at {
  http_origin origin;
  std::string secret;
};

/// A witness of the log that others run, and where it takes add-checkpoint.
struct witness_at {
  http_origin origin;
  std::string path;
  note_key key;
};

struct gateway_setup {
  std::shared_ptr<face_queue> queue;
  std::shared_ptr<publisher> publish;
  std::shared_ptr<spend_store> spends;
  std::shared_ptr<http_client> client;
  issuer_at issuer;
  std::shared_ptr<http_client> witness_client;  // null where there are no witnesses
  std::vector<witness_at> witnesses;
  uint32_t epoch_s = 600, grace_s = 60;
  std::function<uint64_t()> now_s = unix_s;
  tracer* trace = nullptr;
};

/// Opens the outer layer, spends the token, and passes the sealed request to the node that its
/// client drew. It sees tokens and sizes; what is asked, and by whom, it can't.
class gateway_state {
 public:
  const char* name = "gateway";

  void begin(gateway_actor::stateful_pointer<gateway_state> self, gateway_setup setup,
             scheduler_actor scheduler, directory_actor directory);
  void read_queue();
  void placed(const wire<schema::Placed>& m);
  void answer(const wire<schema::Answer>& m);
  void lost(const wire<schema::Lost>& m);
  void publish(const wire<schema::Publish>& m);
  void on_tick();
  void down(const caf::down_msg& d);
  void fail_all();

 private:
  /// One request from its outer layer to its answer's end.
  struct exchange {
    explicit exchange(http_request r)
        : http(std::move(r)), plain(http.memory.resource()), inner(http.memory.resource()) {}
    http_request http;
    std::pmr::string plain;
    bhttp_request_view inner;  // views of `plain`
    std::optional<outer_answer> answer;
    std::vector<hash32> candidates;  // that were not asked yet
    std::optional<inner_sealed> sealed;
    std::optional<inner_claim> claimed;
    uint64_t request = 0;
    uint64_t asked_ns = 0;
    uint64_t gone_ns = 0;  // when its answerer was found to be gone; 0: it wasn't
    request_actor answerer;
    credit_window credit;
    bool spent = false, settled = false, placed = false, dispatched = false;
    bool over = false;  // the node has said its last
    token_id token() const { return {sealed->token.key_id, sealed->token.nonce}; }
  };

  // gateway.cpp: from HTTP to the scheduler
  void arrived(http_request r);
  void open(exchange& x, ohttp_form form);
  void route(exchange& x);
  void look(exchange& x, std::string_view path);
  std::optional<inner_problem> check(const inner_sealed& s) const;
  const token_key* redeemable(const hash32& id) const;
  void take(exchange& x, inner_sealed s);
  using spend_heard = void (gateway_state::*)(uint64_t http_id, const token_id& token,
                                              const result<spend_answer>& how);
  bool spend(exchange& x, const token_id& token, const hash32& change, spend_heard heard);
  void spent(uint64_t http_id, const token_id& token, const result<spend_answer>& how);
  void place(exchange& x);
  void refuse_outside(uint64_t http_id, int status, const char* title, std::string_view type = {});
  // gateway_answer.cpp: from the node to the client
  void dispatch(exchange& x, schema::Placed::At::Reader at);
  void write(exchange& x, const result<void>& good, std::vector<std::byte>& out);
  void drained(uint64_t http_id, size_t bytes);
  void problem(exchange& x, inner_problem why);
  void fail(exchange& x, outcome how, inner_problem why);
  void settle(exchange& x, outcome how);
  template <class Actor>
  void cancel(uint64_t request, const Actor& at);
  void answerer_down(const caf::down_msg& d);
  void node_lost(exchange& x);
  void drop(uint64_t http_id, bool and_cancel);
  exchange* find(uint64_t request);
  exchange* find_http(uint64_t http_id);
  // gateway_issuer.cpp: keys and change
  void turn_keys(uint64_t now_s);
  void ask_issuer();
  void issuer_said(const result<http_whole>& how);
  void turn_token_keys(uint64_t now_s);
  void drop_retired(const std::optional<token_directory>& before);
  void want_rosters();
  void claim(exchange& x);
  void claim_allowed(uint64_t http_id, const result<change_state>& state);
  void spend_claimed(exchange& x);
  void claimed_spent(uint64_t http_id, const token_id& token, const result<spend_answer>& how);
  void change_came(uint64_t http_id, const result<http_whole>& how);
  void tell_state();
  // gateway_witness.cpp: other people's word of the log
  void ask_witnesses();
  void witness_said(size_t witness, const result<http_whole>& how);
  inner_problem token_wanted(const char* title) const;

  gateway_actor::stateful_pointer<gateway_state> self_ = nullptr;
  gateway_setup setup_;
  clerk clerk_;
  http_server* server_ = nullptr;
  bool broken_ = false;
  scheduler_actor scheduler_;
  directory_actor directory_;
  std::optional<ohttp_keys> keys_;
  uint64_t rotate_at_s_ = 0, ask_issuer_at_s_ = 0, cosign_at_s_ = 0;
  std::vector<token_key> token_keys_;  // redeemable: the current one first
  token_directory token_keys_seen_;    // that they are of
  bool issuer_heard_ = false, rosters_wanted_ = false;
  std::string note_;  // what is amiss
  std::optional<outside_witnesses> witnesses_;
  std::unordered_map<uint64_t, std::unique_ptr<exchange>> exchanges_;  // by HTTP's id
  std::unordered_map<uint64_t, uint64_t> http_of_;                     // by request
  struct {
    uint64_t requests = 0, looks = 0, spent = 0, answered = 0, refused = 0, changed = 0;
  } count_;
};

gateway_actor::behavior_type gateway(gateway_actor::stateful_pointer<gateway_state> self,
                                     gateway_setup setup, scheduler_actor scheduler,
                                     directory_actor directory);

}  // namespace lethe
