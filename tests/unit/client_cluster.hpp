#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "runtime/base/unix_time.hpp"
#include "runtime/bhttp/response_writer.hpp"
#include "runtime/client/trust_file.hpp"
#include "runtime/crypto/node_seal.hpp"
#include "runtime/crypto/ohttp_names.hpp"
#include "runtime/crypto/ohttp_request.hpp"
#include "runtime/crypto/refusal.hpp"
#include "runtime/crypto/sealed_message.hpp"
#include "runtime/gateway/outer_answer.hpp"
#include "runtime/gateway/sealed_names.hpp"
#include "runtime/http/http_server.hpp"
#include "runtime/token/base64url.hpp"
#include "tests/unit/log_samples.hpp"
#include "tests/unit/token_samples.hpp"

/// A whole cluster in one object: relay, gateway, issuer, nodes and log, of the same libraries as a
/// real one. Each of them can be told to cheat.
namespace lethe::test {

inline const token_challenge cluster_challenge{.issuer = "issuer.test", .origin = "gateway.test"};

/// What a node makes of a request before it seals the answer.
struct node_answer {
  uint32_t status = 200;
  std::string type = "application/json";
  std::vector<std::string> pieces;
};

/// How somebody between cheats. Each is empty or false in an honest cluster.
struct cheating {
  std::function<void(bytes&)> keys;                        // that the relay passes on
  std::function<void(bytes&)> roster;                      // that is served
  std::function<void(std::vector<bytes>& chunks)> answer;  // sealed by the node, nonce first
  std::function<void(receipt&)> receipt_says;
  std::function<void(bytes&)> change;   // the issuer's signature
  std::function<void(bytes&)> batch;    // the issuer's answer to a purchase
  std::function<void(bytes&)> refusal;  // the node's, with a 429
  size_t padding = 0;                   // chunks at least, behind the answer
  std::optional<uint32_t> chunk_bytes;  // that the node seals, whatever the policy says
  bool node_not_asked = false;          // another node answers
  bool cut_outside = false;             // the gateway ends before the last chunk
  bool cut_sealed = false;              // the node's last chunk is left out
  bool challenge_other = false;         // a 401 with a challenge of one's own
};

class fake_cluster final : public http_handler {
 public:
  /// `nodes` of capacity 100.
  explicit fake_cluster(uint32_t nodes = 3, std::function<void(log_policy&)> policy = {}) {
    auto made = ohttp_keys::make({.grace = 60, .first_id = 7});
    keys_.emplace(*std::move(made));
    EXPECT_TRUE(issuer_.add(copy_of_key(key_of_test(0)), now_s - 1000));
    policy_ = sample_policy();
    policy_.chunk_bytes = 512;
    policy_.tick_ms = 0;
    policy_.share_max_permille = 1000;
    policy_.token_batch = 8;
    policy_.evidence_kinds = {"none"};
    policy_.token_challenge = cluster_challenge.to_bytes();
    if (policy) policy(policy_);
    log.add(policy_.to_entry(1));
    log_keys();
    log_issuer();
    set_roster(nodes);
    http_listener where[] = {{"all", "127.0.0.1:0"}};
    auto s = http_server::start(where, {}, *this);
    EXPECT_TRUE(s) << s.why().text;
    server_ = *std::move(s);
  }
  ~fake_cluster() override {
    if (rest_.joinable()) rest_.join();
    server_.reset();
  }

  std::string url() const { return "http://" + server_->bound()[0].address; }
  std::string trust_text_of(const std::vector<std::string>& evidence = {"none"}) const {
    return trust_text{.log = log_signer().key(),
                      .witnesses = {witness_signer(0).key(), witness_signer(1).key()},
                      .quorum = 2,
                      .relays = {url()},
                      .origin = cluster_challenge.origin,
                      .issuer = url(),
                      .issuer_name = cluster_challenge.issuer,
                      .evidence = evidence,
                      .policy = accepts}
        .toml();
  }

  // What a test changes, between calls of the client.
  policy_bounds accepts{.name = "embedded"};
  size_t answers = 0;  // which of the nodes that were drawn
  uint64_t now_s = t0;
  free_log log;
  cheating cheat;
  uint32_t witnesses = 2;
  std::optional<uint64_t> witnessed_at_s;
  std::function<std::optional<inner_problem>(const inner_sealed&, const node_key&)> refuse;
  node_answer says{.pieces = {"{\"id\":\"1\"}"}};
  std::optional<uint64_t> buyers;       // that the issuer says of keys whose epoch is over
  uint32_t claims_too_early = 0;        // answered 409
  std::atomic<bool> unreached = false;  // the relay's gateway
  std::atomic<bool> hangs = false;      // the relay or its gateway
  std::function<void()> hold;           // before what follows an answer's first chunk

  // What it saw.
  std::mutex lock;
  std::vector<std::string> bodies, paths;  // that nodes opened
  std::vector<std::string> fields_inside;
  std::vector<size_t> sealed_sizes;
  std::vector<private_token> tokens;  // shown with requests
  std::vector<bytes> claims;
  std::vector<std::string> fields_outside, bodies_outside;  // of requests to the relay
  uint32_t asked = 0;                                       // sealed requests
  std::atomic<uint32_t> hung{0};                            // that had no answer

  /// What `hold` held back is said.
  void join() { rest_.join(); }
  void rotate_keys() {
    EXPECT_TRUE(keys_->rotate(now_s));
    log_keys();
  }
  void forget_keys() {  // a gateway that started anew
    keys_.emplace(*ohttp_keys::make({.grace = 60, .first_id = 90}));
    log_keys();
  }
  void log_keys() { log.add({log_kind::ohttp_keys, ++keys_epoch_, keys_->published()}); }
  void add_issuer_key(size_t i, uint64_t not_before_s) {
    EXPECT_TRUE(issuer_.add(copy_of_key(key_of_test(i)), not_before_s));
    log_issuer();
  }
  void log_issuer() {
    auto d = issuer_.directory("/token-request", now_s);
    for (auto& k : d.keys)
      if (k.not_before_s < d.usable(now_s)->not_before_s) k.buyers = buyers;
    auto text = write_directory(d);
    log.add({log_kind::issuer_keys, ++issuer_epoch_, text_bytes(text)});
  }
  /// The next epoch's, with new keys.
  void set_roster(uint32_t nodes, const std::function<void(roster_leaf&)>& change = {}) {
    keys_of_nodes_.clear();
    roster r{.epoch = ++roster_epoch_};
    for (uint32_t n = 0; n < nodes; ++n) {
      keys_of_nodes_.push_back(*node_key::make());
      roster_leaf l = leaf(n, 100, n);
      l.node = keys_of_nodes_.back().published();
      l.not_before = now_s - 1;
      l.not_after = now_s + 1800;
      if (change) change(l);
      l.sign(identity(n));
      r.leaves.push_back(std::move(l));
    }
    r.sort();
    roster_ = r;
    log.add(r.summary(now_s).to_entry(roster_epoch_));
  }
  const roster& nodes() const { return roster_; }
  uint32_t epoch() const { return roster_epoch_; }

  void arrived(http_server& from, http_request r) override {
    std::lock_guard guard(lock);
    const bool bought = r.head.path == "/token-request-batch";
    if (hangs && !bought) return void(++hung);
    if (unreached && !bought) return from.answer(r.id, {.status = 502}, "");
    if (!bought) bodies_outside.emplace_back(r.body);
    for (const auto& f : r.head.fields)
      if (!bought) fields_outside.push_back(std::string(f.name) + ": " + std::string(f.value));
    if (r.head.path == ohttp_names::gateway_path) return serve_keys(from, r);
    if (bought) return sell(from, r);
    answer_sealed(from, r);
  }
  void left(uint64_t) override {}
  void drained(uint64_t, size_t) override {}
  void sent(uint64_t) override {}

 private:
  void serve_keys(http_server& from, http_request& r) {
    bytes keys = keys_->published();
    if (cheat.keys) cheat.keys(keys);
    from.answer(r.id, {.content_type = std::string(ohttp_names::keys)}, as_text(keys));
  }

  void sell(http_server& from, http_request& r) {
    if (r.head.field("authorization") != "Bearer secret-of-account")
      return from.answer(r.id, {.status = 401, .content_type = "text/plain"}, "");
    auto answer = issuer_.answer_batch(as_bytes(r.body), now_s);
    if (cheat.batch) cheat.batch(answer.body);
    from.answer(
        r.id,
        {.status = int(answer.status), .content_type = std::string(token_batch_response_media)},
        as_text(answer.body));
  }

  void answer_sealed(http_server& from, http_request& r) {
    auto* memory = r.memory.resource();
    ohttp_request_opener opener(*keys_, ohttp_form::chunked, now_s);
    std::pmr::string plain(memory);
    auto pushed = opener.push(as_bytes(r.body), plain);
    auto exchange = pushed ? opener.finish(plain) : result<ohttp_exchange>(pushed.why());
    if (!exchange) {
      auto text = opener.refusal() == ohttp_refusal::key
                      ? fmt::format("{{\"type\":\"{}\"}}", ohttp_names::key_problem)
                      : std::string("{}");
      return from.answer(r.id, {.status = 400, .content_type = "application/problem+json"}, text);
    }
    outer_answer out(*std::move(exchange));
    auto inner = read_request(plain, memory);
    ASSERT_TRUE(inner) << inner.why().text;
    std::vector<std::byte> sealed;
    auto wants = read_inner(*inner);
    if (auto* at = std::get_if<inner_look>(&wants)) look(out, at->path, sealed);
    if (auto* s = std::get_if<inner_sealed>(&wants)) serve(out, *s, memory, sealed);
    if (auto* c = std::get_if<inner_claim>(&wants)) change(out, *c, sealed);
    if (auto* bad = std::get_if<inner_problem>(&wants)) refuse_with(out, *bad, sealed);
    from.begin(r.id, {.content_type = std::string(out.media_type())});
    if (cheat.cut_outside && std::holds_alternative<inner_sealed>(wants)) {
      from.write(r.id, as_text(sealed).substr(0, sealed.size() - 20));
      return from.end(r.id);
    }
    if (hold && std::holds_alternative<inner_sealed>(wants)) return write_slowly(from, r, sealed);
    from.write(r.id, as_text(sealed));
    from.end(r.id);
  }

  void write_slowly(http_server& from, const http_request& r, const bytes& sealed) {
    from.write(r.id, as_text(sealed).substr(0, first_chunk_end_));
    rest_ = std::jthread([this, &from, id = r.id, rest = sealed] {
      hold();
      from.write(id, as_text(rest).substr(first_chunk_end_));
      from.end(id);
    });
  }

  static void refuse_with(outer_answer& out, const inner_problem& why, bytes& sealed) {
    EXPECT_TRUE(out.problem(why, sealed));
  }

  void look(outer_answer& out, std::string_view path, bytes& sealed) {
    std::string_view type = "application/octet-stream";
    bytes page;
    if (path == "roster/" + std::to_string(roster_epoch_)) {
      type = sealed_names::roster;
      page = roster_.to_bytes();
      if (cheat.roster) cheat.roster(page);
    } else {
      auto got = log.serve(log.note(witnesses, witnessed_at_s.value_or(now_s)))(path);
      if (!got) return refuse_with(out, {404, "no such page"}, sealed);
      page = *got;
    }
    EXPECT_TRUE(out.whole(200, type, as_text(page), sealed));
  }

  void serve(outer_answer& out, const inner_sealed& s, std::pmr::memory_resource* memory,
             bytes& sealed) {
    ++asked;
    tokens.push_back(s.token);
    sealed_sizes.push_back(s.message.size());
    const auto* key = issuer_.redeemable(s.token.key_id, now_s);
    if (!key || !verify_token(s.token, *key, cluster_challenge.digest())) {
      auto demand = token_demand{cluster_challenge, {}, {}};
      if (cheat.challenge_other) demand.challenge.origin = "tag-of-one-client";
      return refuse_with(
          out, {.status = 401, .title = "no good token", .challenge = write_demand(demand)},
          sealed);
    }
    const auto seen = spent_.find(s.token.nonce);
    if (seen != spent_.end()) {
      return refuse_with(out, {403, "spent before", change_word::none}, sealed);
    }
    auto message = sealed_message::parse(s.message);
    ASSERT_TRUE(message) << message.why().text;
    const node_key* node = nullptr;
    for (const auto& k : keys_of_nodes_)
      if (k.published().id == message->entries[answers].node_id) node = &k;
    std::optional<inner_problem> bad;
    if (!node)
      bad = inner_problem{404, "no such node", change_word::due};
    else if (refuse)
      bad = refuse(s, *node);
    spent_[s.token.nonce] = {s.change.digest(), bad && bad->change == change_word::due};
    if (bad && bad->change == change_word::absent) spent_.erase(s.token.nonce);
    if (bad) return refuse_with(out, *bad, sealed);
    answer_from(out, *node, s, memory, sealed);
  }

  void answer_from(outer_answer& out, const node_key& node, const inner_sealed& s,
                   std::pmr::memory_resource* memory, bytes& sealed) {
    auto opened =
        open_request(node, s.message, roster_epoch_, s.token.hash(), memory, chunk_bytes());
    ASSERT_TRUE(opened) << opened.why().text;
    auto asked_of = read_request(opened->plain, memory);
    ASSERT_TRUE(asked_of) << asked_of.why().text;
    bodies.emplace_back(asked_of->content());
    paths.emplace_back(asked_of->path);
    for (const auto& f : asked_of->fields) fields_inside.emplace_back(f.name);
    auto chunks = sealed_answer(node, s, *opened, memory);
    if (cheat.answer) cheat.answer(chunks);
    if (cheat.cut_sealed) chunks.pop_back();
    bhttp_field type{"content-type", sealed_names::response};
    ASSERT_TRUE(out.head(200, {&type, 1}));
    for (size_t i = 0; i < chunks.size(); ++i) {
      ASSERT_TRUE(out.content(as_text(chunks[i]), sealed));
      if (i == 1) first_chunk_end_ = sealed.size();  // behind the nonce
    }
    ASSERT_TRUE(out.end({}, sealed));
  }

  std::vector<bytes> sealed_answer(const node_key& node, const inner_sealed& s,
                                   opened_request& opened, std::pmr::memory_resource* memory) {
    std::vector<std::string> plain;
    bhttp_response_writer writer;
    std::pmr::string text(memory);
    bhttp_field fields[] = {{"content-type", says.type}};
    EXPECT_TRUE(writer.head(says.status, fields, text));
    for (const auto& p : says.pieces) {
      writer.content(p, text);
      plain.emplace_back(std::exchange(text, std::pmr::string(memory)));
    }
    writer.end(text);
    if (plain.empty()) plain.emplace_back();
    plain.back() += text;
    receipt r{.token_hash = s.token.hash(),
              .request_hash = opened.request_hash,
              .epoch = opened.epoch,
              .arenas = 2,
              .bytes_wiped = 4096};
    if (cheat.receipt_says) cheat.receipt_says(r);
    key_bytes other(answer_nonce_bytes(node.published().suite));
    if (cheat.node_not_asked)
      opened.answer = answer_sealer(node.published().suite, node.published().id, opened.enc, other,
                                    chunk_bytes());
    std::vector<bytes> chunks = {copy_of(opened.answer.first())};
    for (const auto& p : plain) {
      chunks.emplace_back();
      EXPECT_TRUE(opened.answer.seal(as_bytes(p), false, chunks.back()));
    }
    for (size_t n = 0; chunk_bytes() && (!opened.answer.may_end() || n < cheat.padding); ++n) {
      chunks.emplace_back();
      EXPECT_TRUE(opened.answer.seal({}, false, chunks.back()));
    }
    chunks.emplace_back();
    EXPECT_TRUE(opened.answer.seal(sign_receipt(node, r), true, chunks.back()));
    return chunks;
  }

  uint32_t chunk_bytes() const { return cheat.chunk_bytes.value_or(policy_.chunk_bytes); }

  void change(outer_answer& out, const inner_claim& c, bytes& sealed) {
    claims.push_back(copy_of(c.bytes));
    if (claims_too_early > 0) {
      --claims_too_early;
      return refuse_with(out, {409, "its request has not ended"}, sealed);
    }
    const auto spent = spent_.try_emplace(c.token.nonce, c.change.digest(), true).first;
    if (!spent->second.second || spent->second.first != c.change.digest())
      return refuse_with(out, {403, "no change is due"}, sealed);
    auto claim = issuer_.claim_change(c.token.to_bytes(), c.change.to_bytes(),
                                      cluster_challenge.digest(), now_s);
    ASSERT_TRUE(claim) << claim.why().text;
    auto answer = issuer_.sign(*claim, now_s);
    ASSERT_EQ(answer.status, 200u) << answer.why;
    if (cheat.change) cheat.change(answer.body);
    EXPECT_TRUE(out.whole(200, token_response_media, as_text(answer.body), sealed));
  }

  std::optional<ohttp_keys> keys_;
  token_issuer issuer_;
  log_policy policy_;
  std::vector<node_key> keys_of_nodes_;
  roster roster_;
  uint32_t keys_epoch_ = 0, issuer_epoch_ = 0, roster_epoch_ = 0;
  std::map<hash32, std::pair<hash32, bool>> spent_;  // nonce: change digest, and whether it is due
  size_t first_chunk_end_ = 0;
  std::unique_ptr<http_server> server_;
  std::jthread rest_;
};

/// The node is full, and says so with its signature.
inline std::optional<inner_problem> node_full(const fake_cluster& c, const inner_sealed& s,
                                              const node_key& node) {
  auto binding = sealed_message::parse(s.message)->binding(s.token.hash());
  auto signed_by_node = sign_refusal(node, {binding, c.epoch(), refusal_reason::full});
  bytes refusal = copy_of(signed_by_node);
  if (c.cheat.refusal) c.cheat.refusal(refusal);
  std::string text(base64url_chars(refusal.size()), '\0');
  write_base64url(refusal, text);
  return inner_problem{.status = 429, .title = "full", .change = change_word::due, .refusal = text};
}

/// A trust file in a folder of its own, with an account's secret.
struct client_home {
  explicit client_home(const fake_cluster& c, const std::vector<std::string>& evidence = {"none"}) {
    auto text = c.trust_text_of(evidence);
    put_file(folder / "trust.toml", as_bytes(text));
    put_file(folder / "account.secret", as_bytes("secret-of-account\n"));
    fs::permissions(folder / "account.secret", fs::perms::owner_read | fs::perms::owner_write);
  }
  trust_file trust() const {
    auto read = trust_file::read(file());
    EXPECT_TRUE(read) << read.why().text;
    return *std::move(read);
  }
  fs::path file() const { return folder / "trust.toml"; }
  scratch folder;
};

}  // namespace lethe::test
