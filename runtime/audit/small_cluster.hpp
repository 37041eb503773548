#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "runtime/audit/willing_log.hpp"
#include "runtime/base/temporary_folder.hpp"
#include "runtime/client/trust_file.hpp"
#include "runtime/crypto/node_seal.hpp"
#include "runtime/crypto/ohttp_keys.hpp"
#include "runtime/gateway/inner_request.hpp"
#include "runtime/gateway/outer_answer.hpp"
#include "runtime/http/http_server.hpp"
#include "runtime/log/log_policy.hpp"
#include "runtime/token/token_challenge.hpp"
#include "runtime/token/token_key.hpp"

/// What clients meet when they are measured: relay, gateway, scheduler, nodes and log in one
/// object, of the same libraries as a real cluster. Those between may all be one party, and lie.
namespace lethe::audit {

/// How a scheduler treats a sealed request.
enum class treatment : uint8_t {
  forwarded,         // to one of the candidates
  gone,              // 404: nobody can sign that
  not_ready,         // 503: nor that
  full_by_hearsay,   // 429, without a node's word
  full_by_its_word,  // 429, signed by the first candidate, which is in league with the scheduler
  full_by_another,   // 429, signed by a node that was not drawn
  moved,             // to a node that was not drawn, which tries to open it
  dropped,           // the connection is cut
  stalled,           // no answer, ever
};
struct decision {
  treatment how = treatment::forwarded;
  uint32_t candidate = 0;  // who answers, of those that were drawn
};

/// What a scheduler knows of a request if its relay tells it all.
struct arrival {
  uint32_t user = 0;
  std::vector<uint32_t> drawn;  // places in the roster, in the seal's order
};

/// That a node has opened a seal, and whose words were in it.
struct opening {
  uint32_t user = 0, talk = 0, turn = 0;  // as the body says
  uint32_t node = 0;                      // place in the roster
  bool answered = false;                  // it was the one that did
};

/// What passes the router: the outer request as it is seen, the inner one as the gateway opens it.
struct routed {
  std::string outer, inner;
};

struct small_cluster_setup {
  std::vector<uint32_t> capacities = {100, 100, 100, 100};
  uint32_t users = 1;  // each comes by an address of its own
  uint32_t candidates = 1, redraws = 2;
  bool all_open = false;  // every candidate opens the seal, not only the one that answers
};

class small_cluster final : public http_handler {
 public:
  static result<std::unique_ptr<small_cluster>> start(const small_cluster_setup& setup);
  ~small_cluster() override { server_.reset(); }

  /// For a client that keeps its files there.
  trust_file trust(uint32_t user, const std::filesystem::path& folder) const;
  std::filesystem::path new_home() const;  // a folder for one
  std::vector<private_token> sell(size_t tokens) const;
  const roster& nodes() const { return log_->nodes(); }
  const log_policy& policy() const { return policy_; }

  /// What a lie is made of: a log with the same keys, gateway and issuer, and no roster yet.
  result<std::unique_ptr<willing_log>> another_log(const log_policy& policy) const;
  void sign(roster_leaf& leaf) const;  // by its node's identity

  // Set between calls of clients:
  std::function<decision(const arrival&)> schedule;  // none: all are forwarded to the first
  std::function<void(uint32_t user)> on_stalled;
  std::function<std::optional<std::vector<std::byte>>(std::string_view path)> shows;  // not the log
  const willing_log* log_shown = nullptr;  // in place of its own
  bool other_keys_shown = false;           // of a gateway that is not logged
  bool another_answers = false;            // a node that was not drawn
  bool keeps_routed = false;
  std::atomic<uint64_t> now_s;

  std::vector<opening> take_openings();
  std::vector<routed> take_routed();

  void arrived(http_server& from, http_request r) override;
  void left(uint64_t) override {}
  void drained(uint64_t, size_t) override {}
  void sent(uint64_t) override {}

 private:
  using bytes = std::vector<std::byte>;
  struct asked;  // one sealed request
  small_cluster(const small_cluster_setup& setup, temporary_folder folder, ohttp_keys keys,
                ohttp_keys others);
  result<void> begin();
  result<void> log_all(willing_log& into, const log_policy& policy) const;
  void answer_sealed(http_server& from, http_request& r);
  void look(outer_answer& out, std::string_view path, bytes& sealed) const;
  /// Nothing: the connection is cut, or nothing is ever said.
  bool serve(http_server& from, http_request& r, outer_answer& out, const inner_sealed& s,
             bytes& sealed);
  std::optional<inner_problem> refusal(treatment how, const asked& a) const;
  result<void> run_nodes(const asked& a, uint32_t answers, std::pmr::memory_resource* memory,
                         outer_answer& out, bytes& sealed);
  void try_elsewhere(const asked& a, std::pmr::memory_resource* memory);
  result<void> answer_as(const node_key& key, const asked& a, opened_request& opened,
                         outer_answer& out, bytes& sealed) const;
  uint32_t place_of(const hash32& node_id) const;

  const small_cluster_setup setup_;
  temporary_folder folder_;
  const willing_log::keys log_keys_ = willing_log::keys::make();
  const token_challenge challenge_{.issuer = "issuer.invalid", .origin = "gateway.invalid"};
  const issuer_key issuer_ = issuer_key::make();
  log_policy policy_;
  std::vector<signing_key> identities_;  // in the order of the roster, as are:
  std::vector<node_key> node_keys_;
  std::unique_ptr<willing_log> log_;
  mutable std::atomic<uint32_t> homes_ = 0;
  std::mutex mutex_;  // of what follows
  ohttp_keys keys_, other_keys_;
  std::vector<opening> openings_;
  std::vector<routed> routed_;
  std::unique_ptr<http_server> server_;
};

}  // namespace lethe::audit
