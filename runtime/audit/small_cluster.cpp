#include "runtime/audit/small_cluster.hpp"

#include <algorithm>

#include "runtime/base/unix_time.hpp"
#include "runtime/crypto/node_seal.hpp"
#include "runtime/crypto/ohttp_names.hpp"
#include "runtime/crypto/ohttp_request.hpp"
#include "runtime/crypto/refusal.hpp"
#include "runtime/crypto/sealed_message.hpp"
#include "runtime/gateway/sealed_names.hpp"
#include "runtime/json/json_slice.hpp"
#include "runtime/token/base64url.hpp"
#include "runtime/token/token_client.hpp"
#include "runtime/token/token_directory.hpp"

namespace lethe::audit {

namespace {

constexpr uint64_t roster_lasts_s = 1800;
constexpr uint32_t chunk_bytes = 256;
constexpr uint32_t nowhere = UINT32_MAX;

std::string class_of(uint32_t capacity) { return fmt::format("audit/{}", capacity); }

std::string answer_of(std::string_view body) {
  std::pmr::string out;
  bhttp_response_writer writer;
  const bhttp_field type{"content-type", "application/json"};
  check(bool(writer.head(200, {&type, 1}, out)));
  writer.content(body, out);
  writer.end(out);
  return std::string(out);
}

opening opening_of(std::string_view body, uint32_t node, bool answers) {
  auto json = check_json(body);
  auto number = [&](const char* name) {
    auto member = json ? json->find(name) : std::nullopt;
    return uint32_t(member ? member->whole().value_or(0) : 0);
  };
  return {number("user"), number("talk"), number("turn"), node, answers};
}

std::string outer_text(const http_request& r) {
  std::string out = fmt::format("{} {}?{}\n", r.head.method, r.head.path, r.head.query);
  for (const auto& f : r.head.fields) out += fmt::format("{}: {}\n", f.name, f.value);
  out += r.body.substr(0, ohttp_head::wire_bytes);  // whose key it is; the rest is sealed
  return out + fmt::format("\n{} bytes", r.body.size());
}

}  // namespace

struct small_cluster::asked {
  const inner_sealed& sealed;
  sealed_message message;
  arrival from;
};

small_cluster::small_cluster(const small_cluster_setup& setup, temporary_folder folder,
                             ohttp_keys keys, ohttp_keys others)
    : now_s(unix_s()),
      setup_(setup),
      folder_(std::move(folder)),
      keys_(std::move(keys)),
      other_keys_(std::move(others)) {
  policy_ = {.name = "embedded",
             .candidates = setup_.candidates,
             .redraws = setup_.redraws,
             .request_buckets = {1024, 4096, 16384},
             .chunk_bytes = chunk_bytes,
             .growth_max_permille = 500,
             .roster_age_max_s = roster_lasts_s,
             .evidence_kinds = {std::string(no_evidence)},
             .token_challenge = challenge_.to_bytes(),
             .token_batch = 32,
             .buyers_min = 2};
  for (uint32_t capacity : setup_.capacities) {
    policy_.classes[class_of(capacity)] = capacity;
    node_keys_.push_back(*node_key::make());
    identities_.push_back(signing_key::make());
  }
  std::ranges::sort(node_keys_, {}, [](const node_key& k) { return k.published().id; });
}

result<std::unique_ptr<small_cluster>> small_cluster::start(const small_cluster_setup& setup) {
  check(!setup.capacities.empty() && setup.users > 0);
  auto folder = temporary_folder::make_in_memory("lethe-audit");
  if (!folder) return folder.why();
  auto keys = ohttp_keys::make({.grace = 60, .first_id = 7});
  auto others = ohttp_keys::make({.grace = 60, .first_id = 77});
  if (!keys || !others) return (keys ? others : keys).why();
  std::unique_ptr<small_cluster> made(
      new small_cluster(setup, *std::move(folder), *std::move(keys), *std::move(others)));
  if (auto ok = made->begin(); !ok) return ok.why();
  return made;
}

result<void> small_cluster::begin() {
  auto log = another_log(policy_);
  if (!log) return log.why();
  log_ = *std::move(log);
  roster nodes;
  for (size_t i = 0; i < node_keys_.size(); ++i) {
    roster_leaf leaf{.node = node_keys_[i].published(),
                     .model_class = class_of(setup_.capacities[i]),
                     .capacity = setup_.capacities[i],
                     .not_before = now_s - 1,
                     .not_after = now_s + roster_lasts_s};
    sign(nodes.leaves.emplace_back(std::move(leaf)));
  }
  if (auto ok = log_->add(std::move(nodes), now_s); !ok) return ok;
  const std::vector<http_listener> where(setup_.users, {"audit", "127.0.0.1:0"});
  auto server = http_server::start(where, {}, *this);
  if (!server) return server.why();
  server_ = *std::move(server);
  return {};
}

result<std::unique_ptr<willing_log>> small_cluster::another_log(const log_policy& policy) const {
  auto log = willing_log::create(new_home(), log_keys_);
  if (!log) return log.why();
  if (auto ok = log_all(**log, policy); !ok) return ok.why();
  return log;
}

result<void> small_cluster::log_all(willing_log& into, const log_policy& policy) const {
  if (auto ok = into.add(log_kind::policy, as_bytes(policy.text()), now_s); !ok) return ok;
  if (auto ok = into.add(log_kind::ohttp_keys, keys_.published(), now_s); !ok) return ok;
  const auto keys = write_directory(
      {"/token-request", {{issuer_.published().spki(), std::optional<uint64_t>()}}});
  return into.add(log_kind::issuer_keys, as_bytes(keys), now_s);
}

void small_cluster::sign(roster_leaf& leaf) const {
  const uint32_t at = place_of(leaf.node.id);
  leaf.sign(identities_.at(at == nowhere ? 0 : at));
}

trust_file small_cluster::trust(uint32_t user, const std::filesystem::path& folder) const {
  auto here = server_at::from_url("http://" + server_->bound().at(user).address);
  return {.file = folder / "trust.toml",
          .log = log_keys_.trust(),
          .relays = {*here},
          .issuer = *here,
          .issuer_name = challenge_.issuer,
          .origin = challenge_.origin,
          .evidence = {std::string(no_evidence)},
          .authorities = {},
          .wallet = folder / "wallet",
          .account = folder / "account",
          .policy = {.name = policy_.name, .candidates_max = setup_.candidates}};
}

std::filesystem::path small_cluster::new_home() const {
  auto home = folder_.path() / fmt::format("client-{}", ++homes_);
  std::error_code wrong;  // whoever opens its first file there is told
  std::filesystem::create_directories(home, wrong);
  return home;
}

std::vector<private_token> small_cluster::sell(size_t tokens) const {
  std::vector<private_token> sold;
  const token_key& key = issuer_.published();
  while (sold.size() < tokens) {
    auto pending = pending_token::make(key, challenge_.digest());
    sold.push_back(*pending->finish(key, *issuer_.sign(pending->request().blinded)));
  }
  return sold;
}

uint32_t small_cluster::place_of(const hash32& node_id) const {
  for (uint32_t i = 0; i < node_keys_.size(); ++i)
    if (node_keys_[i].published().id == node_id) return i;
  return nowhere;
}

std::vector<opening> small_cluster::take_openings() {
  std::lock_guard lock(mutex_);
  return std::exchange(openings_, {});
}
std::vector<routed> small_cluster::take_routed() {
  std::lock_guard lock(mutex_);
  return std::exchange(routed_, {});
}

void small_cluster::arrived(http_server& from, http_request r) {
  std::lock_guard lock(mutex_);
  if (r.head.path != ohttp_names::gateway_path) return answer_sealed(from, r);
  const auto keys = (other_keys_shown ? other_keys_ : keys_).published();
  from.answer(r.id, {.content_type = std::string(ohttp_names::keys)}, as_text(keys));
}

/// The relay's part, and the gateway's.
void small_cluster::answer_sealed(http_server& from, http_request& r) {
  auto* memory = r.memory.resource();
  // So that clients which believe it are heard, and their belief is seen.
  ohttp_request_opener opener(other_keys_shown ? other_keys_ : keys_, ohttp_form::chunked, now_s);
  std::pmr::string plain(memory);
  auto pushed = opener.push(as_bytes(r.body), plain);
  auto exchange = pushed ? opener.finish(plain) : result<ohttp_exchange>(pushed.why());
  auto inner = exchange ? read_request(plain, memory) : exchange.why();
  if (!inner) return from.answer(r.id, {.status = 400, .content_type = "text/plain"}, "");
  outer_answer out(*std::move(exchange));
  bytes sealed;
  const auto wants = read_inner(*inner);
  if (auto* at = std::get_if<inner_look>(&wants)) {
    look(out, at->path, sealed);
  } else if (auto* s = std::get_if<inner_sealed>(&wants)) {
    if (keeps_routed) routed_.push_back({outer_text(r), std::string(plain)});
    if (!serve(from, r, out, *s, sealed)) return;
  } else {
    check(bool(out.problem({404, "not served"}, sealed)));
  }
  from.begin(r.id, {.content_type = std::string(out.media_type())});
  from.write(r.id, as_text(sealed));
  from.end(r.id);
}

void small_cluster::look(outer_answer& out, std::string_view path, bytes& sealed) const {
  result<bytes> page = fail("none");
  if (auto other = shows ? shows(path) : std::nullopt) page = *std::move(other);
  if (!page) page = (log_shown ? log_shown : log_.get())->look(path);
  const bool roster = path.starts_with("roster");
  auto done = page ? out.whole(200, roster ? sealed_names::roster : "application/octet-stream",
                               as_text(*page), sealed)
                   : out.problem({404, "no such page"}, sealed);
  check(bool(done));
}

bool small_cluster::serve(http_server& from, http_request& r, outer_answer& out,
                          const inner_sealed& s, bytes& sealed) {
  auto message = sealed_message::parse(s.message);
  asked a{s, message ? *message : sealed_message(), {.user = r.listener, .drawn = {}}};
  for (const auto& e : a.message.entries) a.from.drawn.push_back(place_of(e.node_id));
  inner_problem bad{400, "no request of this roster", change_word::none};
  if (a.from.drawn.empty() || std::ranges::find(a.from.drawn, nowhere) != a.from.drawn.end())
    return check(bool(out.problem(bad, sealed))), true;
  const decision what = schedule ? schedule(a.from) : decision{};
  if (what.how == treatment::dropped) return from.cut(r.id), false;
  if (what.how == treatment::stalled) {
    if (on_stalled) on_stalled(r.listener);
    return false;
  }
  if (what.how == treatment::moved) try_elsewhere(a, r.memory.resource());
  if (auto no = refusal(what.how, a)) return check(bool(out.problem(*no, sealed))), true;
  if (run_nodes(a, what.candidate, r.memory.resource(), out, sealed)) return true;
  return from.cut(r.id), false;
}

std::optional<inner_problem> small_cluster::refusal(treatment how, const asked& a) const {
  const char* title = "as it pleases";
  const uint32_t drawn = a.from.drawn[0], other = (drawn + 1) % uint32_t(node_keys_.size());
  auto full = [&](uint32_t signs) {
    const hash32 binding = a.message.binding(a.sealed.token.hash());
    const auto word =
        sign_refusal(node_keys_[signs], {binding, nodes().epoch, refusal_reason::full});
    return inner_problem{429, title, change_word::due, {}, to_base64url(word)};
  };
  switch (how) {
    case treatment::moved:
      return inner_problem{400, "the seal does not open", change_word::none};
    case treatment::gone:
      return inner_problem{404, title, change_word::due};
    case treatment::not_ready:
      return inner_problem{503, title, change_word::due};
    case treatment::full_by_hearsay:
      return inner_problem{429, title, change_word::due};
    case treatment::full_by_its_word:
      return full(drawn);
    case treatment::full_by_another:
      return full(other);
    default:
      return {};
  }
}

/// Each candidate that opens the seal is counted; one of them answers.
result<void> small_cluster::run_nodes(const asked& a, uint32_t answers,
                                      std::pmr::memory_resource* memory, outer_answer& out,
                                      bytes& sealed) {
  for (uint32_t i = 0; i < a.from.drawn.size(); ++i) {
    if (i != answers && !setup_.all_open) continue;
    const node_key& key = node_keys_[a.from.drawn[i]];
    auto opened = open_request(key, a.sealed.message, nodes().epoch, a.sealed.token.hash(), memory,
                               chunk_bytes);
    if (!opened) return opened.why();
    auto request = read_request(opened->plain, memory);
    if (!request) return request.why();
    openings_.push_back(opening_of(request->content(), a.from.drawn[i], i == answers));
    if (i != answers) continue;
    if (auto ok = answer_as(key, a, *opened, out, sealed); !ok) return ok;
  }
  return {};
}

void small_cluster::try_elsewhere(const asked& a, std::pmr::memory_resource* memory) {
  const hash32 token = a.sealed.token.hash();
  for (uint32_t n = 0; n < node_keys_.size(); ++n)
    if (std::ranges::find(a.from.drawn, n) == a.from.drawn.end() &&
        open_request(node_keys_[n], a.sealed.message, nodes().epoch, token, memory, chunk_bytes))
      openings_.push_back({.node = n});
}

result<void> small_cluster::answer_as(const node_key& key, const asked& a, opened_request& opened,
                                      outer_answer& out, bytes& sealed) const {
  const hpke_suite& suite = key.published().suite;
  if (another_answers)  // it has no part in the seal, and so no secret of it
    opened.answer = answer_sealer(suite, key.published().id, opened.enc,
                                  key_bytes(answer_nonce_bytes(suite)), chunk_bytes);
  const bhttp_field type{"content-type", sealed_names::response};
  if (auto ok = out.head(200, {&type, 1}); !ok) return ok;
  bytes answer(opened.answer.first().begin(), opened.answer.first().end());
  if (auto ok = opened.answer.seal(as_bytes(answer_of("{}")), false, answer); !ok) return ok;
  const auto word = sign_receipt(key, {.token_hash = a.sealed.token.hash(),
                                       .request_hash = opened.request_hash,
                                       .epoch = opened.epoch,
                                       .arenas = 1,
                                       .bytes_wiped = opened.plain.size()});
  if (auto ok = opened.answer.seal(word, true, answer); !ok) return ok;
  if (auto ok = out.content(as_text(answer), sealed); !ok) return ok;
  return out.end({}, sealed);
}

}  // namespace lethe::audit
