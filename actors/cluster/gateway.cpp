#include "actors/cluster/gateway.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/crypto/ohttp_names.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/crypto/sealed_message.hpp"
#include "runtime/gateway/sealed_names.hpp"

namespace lethe {

namespace {

constexpr std::chrono::milliseconds tick_every{500};
const std::string spends_trouble = "spent tokens: ";
constexpr uint64_t place_patience_ns = 5'000'000'000;
/// For what a node had said before it was found to be gone.
constexpr uint64_t last_words_patience_ns = 5'000'000'000;

/// The number behind "roster/"; 0 for "roster", the current one; nothing for anything else.
std::optional<uint32_t> roster_in(std::string_view path) {
  std::string_view name = sealed_names::roster_path.substr(1);
  if (path == name) return 0;
  if (!path.starts_with("roster/") || path.size() > name.size() + 11) return {};
  uint64_t number = 0;
  for (char c : path.substr(name.size() + 1)) {
    if (c < '0' || c > '9') return {};
    number = number * 10 + uint64_t(c - '0');
  }
  if (number == 0 || number > UINT32_MAX) return {};
  return uint32_t(number);
}

}  // namespace

void gateway_state::begin(gateway_actor::stateful_pointer<gateway_state> self, gateway_setup setup,
                          scheduler_actor scheduler, directory_actor directory) {
  self_ = self;
  setup_ = std::move(setup);
  clerk_ = clerk(setup_.trace, actor_kind::gateway);
  scheduler_ = std::move(scheduler);
  directory_ = std::move(directory);
  self_->monitor(scheduler_);
  self_->monitor(directory_);
  uint8_t first = 0;
  fill_random(std::as_writable_bytes(std::span(&first, 1)));
  auto keys = ohttp_keys::make({.grace = setup_.grace_s, .first_id = first});
  lethe::check(bool(keys));
  keys_ = *std::move(keys);
  if (auto ok = setup_.publish->gateway_keys(keys_->published(), setup_.now_s()); !ok)
    note_ = ok.why().text;
  rotate_at_s_ = setup_.now_s() + key_life_s;
  std::vector<note_key> outside;
  for (const auto& w : setup_.witnesses) outside.push_back(w.key);
  if (!outside.empty()) witnesses_.emplace(*setup_.publish, std::move(outside));
  setup_.queue->wake(gateway_actor(self));
  on_tick();
}

void gateway_state::on_tick() {
  turn_keys(setup_.now_s());
  ask_witnesses();
  uint64_t now_ns = clerk_.now_ns();
  std::vector<exchange*> silent;
  for (auto& [id, x] : exchanges_)
    if (x->spent && !x->settled && !x->placed && now_ns - x->asked_ns > place_patience_ns)
      silent.push_back(x.get());
  for (auto* x : silent) fail(*x, outcome::not_dispatched, {503, "the scheduler does not answer"});
  std::vector<exchange*> gone;
  for (auto& [id, x] : exchanges_)
    if (x->gone_ns != 0 && !x->over && now_ns - x->gone_ns > last_words_patience_ns)
      gone.push_back(x.get());
  for (auto* x : gone) node_lost(*x);
  tell_state();
  self_->delayed_send(gateway_actor(self_), tick_every, tick::value);
}

void gateway_state::read_queue() {
  for (auto& e : setup_.queue->take()) {
    if (auto* came = std::get_if<face_queue::came>(&e)) {
      server_ = came->from;
      arrived(std::move(came->request));
    } else if (auto* took = std::get_if<face_queue::took>(&e)) {
      drained(took->id, took->bytes);
    } else if (auto* gone = std::get_if<face_queue::gone>(&e)) {
      drop(gone->id, true);
    } else if (auto* sent = std::get_if<face_queue::done>(&e)) {
      drop(sent->id, false);
    } else {
      std::get<face_queue::errand>(e).run();
    }
  }
}

/// Outside the sealed layer: of a request that wasn't opened.
void gateway_state::refuse_outside(uint64_t http_id, int status, const char* title,
                                   std::string_view type) {
  auto text = type.empty() ? fmt::format("{{\"title\":\"{}\"}}", title)
                           : fmt::format("{{\"type\":\"{}\",\"title\":\"{}\"}}", type, title);
  server_->answer(http_id, {.status = status, .content_type = "application/problem+json"}, text);
}

void gateway_state::arrived(http_request r) {
  if (r.head.path == ohttp_names::gateway_path) {
    if (r.head.method != "GET") return refuse_outside(r.id, 405, "use GET");
    auto keys = keys_->published();
    http_answer head{.status = 200, .content_type = std::string(ohttp_names::keys)};
    head.fields.emplace_back("Cache-Control", fmt::format("max-age={}", setup_.epoch_s / 2));
    return server_->answer(r.id, std::move(head), as_text(keys));
  }
  if (r.head.path != "/") return refuse_outside(r.id, 404, "there is no such path");
  if (r.head.method != "POST") return refuse_outside(r.id, 405, "use POST");
  std::string_view type = r.head.field("content-type");
  bool chunked = type == ohttp_names::chunked_request;
  if (!chunked && type != ohttp_names::request)
    return refuse_outside(r.id, 415, "an oblivious request is wanted");
  uint64_t id = r.id;
  auto x = std::make_unique<exchange>(std::move(r));
  auto& kept = *exchanges_.emplace(id, std::move(x)).first->second;
  open(kept, chunked ? ohttp_form::chunked : ohttp_form::whole);
}

void gateway_state::open(exchange& x, ohttp_form form) try {
  uint64_t id = x.http.id;
  ohttp_request_opener opener(*keys_, form, setup_.now_s());
  auto pushed = opener.push(as_bytes(x.http.body), x.plain);
  result<ohttp_exchange> done = pushed ? opener.finish(x.plain) : pushed.why();
  if (!done) {
    drop(id, false);
    switch (opener.refusal()) {
      case ohttp_refusal::key:
        return refuse_outside(id, 400, "the key is unknown or expired", ohttp_names::key_problem);
      case ohttp_refusal::too_large:
        return refuse_outside(id, 413, "the request is too large");
      case ohttp_refusal::full:
        rotate_at_s_ = 0;  // at the next tick
        return refuse_outside(id, 503, "too many requests under this key");
      default:
        return refuse_outside(id, 400, "the request does not open");
    }
  }
  ++count_.requests;
  x.answer.emplace(*std::move(done));
  route(x);
} catch (const std::bad_alloc&) {
  uint64_t id = x.http.id;
  drop(id, false);
  refuse_outside(id, 413, "the request does not fit its memory");
}

void gateway_state::route(exchange& x) {
  if (broken_) return problem(x, {503, "a part of the cluster broke; it starts anew"});
  auto read = read_request(x.plain, x.http.memory.resource());
  if (!read) return problem(x, {400, "what stands inside is no request"});
  x.inner = *std::move(read);
  auto wants = read_inner(x.inner);
  if (auto* bad = std::get_if<inner_problem>(&wants))
    return problem(x, bad->status == 401 ? token_wanted(bad->title) : *bad);
  if (auto* at = std::get_if<inner_look>(&wants)) return look(x, at->path);
  if (auto* c = std::get_if<inner_claim>(&wants)) {
    x.claimed = *c;
    return claim(x);
  }
  take(x, std::get<inner_sealed>(std::move(wants)));
}

/// What everyone is told, and everyone the same.
void gateway_state::look(exchange& x, std::string_view path) {
  ++count_.looks;
  std::string_view type = "application/octet-stream";
  std::vector<std::byte> page;
  auto roster = roster_in(path);
  if (roster) {
    type = sealed_names::roster;
    auto* bytes = setup_.publish->roster_bytes(*roster ? *roster : setup_.publish->last_roster());
    if (!bytes) return problem(x, {404, "there is no such roster"});
    page = *bytes;
  } else if (path == sealed_names::issuer_path.substr(1)) {
    const auto& issuer = setup_.publish->issuer();
    if (!issuer) return problem(x, {503, "the issuer's keys are not known yet"});
    auto text = write_directory(*issuer);
    type = token_directory_media;
    page.assign(as_bytes(text).begin(), as_bytes(text).end());
  } else {
    auto fetched = setup_.publish->fetch(path);
    if (!fetched) return problem(x, {404, "the log has no such tile"});
    if (path == "checkpoint") type = "text/plain; charset=utf-8";
    page = *std::move(fetched);
  }
  std::vector<std::byte> out;
  auto good = x.answer->whole(200, type, as_text(page), out);
  write(x, good, out);
}

const token_key* gateway_state::redeemable(const hash32& id) const {
  for (const auto& key : token_keys_)
    if (key.id() == id) return &key;
  return nullptr;
}

inner_problem gateway_state::token_wanted(const char* title) const {
  inner_problem why{.status = 401, .title = title};
  token_demand demand{setup_.publish->challenge(), {}, {}};
  if (!token_keys_.empty()) demand.key = token_keys_.front().spki();
  why.challenge = write_demand(demand);
  return why;
}

/// All that can be seen before anything is spent.
std::optional<inner_problem> gateway_state::check(const inner_sealed& s) const {
  const auto* key = redeemable(s.token.key_id);
  if (!key) return token_wanted("the token is of no key that is redeemed");
  if (!verify_token(s.token, *key, setup_.publish->challenge().digest()))
    return token_wanted("the token was not bought here");
  if (s.change.short_key_id != token_keys_.front().short_id())
    return inner_problem{400, "lethe-change is not under the issuer's current key"};
  return {};
}

void gateway_state::take(exchange& x, inner_sealed s) {
  if (auto bad = check(s)) return problem(x, *bad);
  auto message = sealed_message::parse(s.message);
  if (!message) return problem(x, {400, "the seal has not its form"});
  if (message->entries.size() > setup_.publish->policy().candidates)
    return problem(x, {400, "sealed to more nodes than the policy allows"});
  for (const auto& e : message->entries)  // draws are with replacement: a node is asked once
    if (std::ranges::find(x.candidates, e.node_id) == x.candidates.end())
      x.candidates.push_back(e.node_id);
  std::ranges::reverse(x.candidates);  // asked from the back
  x.sealed = std::move(s);
  if (!spend(x, x.token(), x.sealed->change.digest(), &gateway_state::spent))
    problem(x, {503, "too many tokens are being spent; nothing was"});
}

/// False: too many are on their way.
bool gateway_state::spend(exchange& x, const token_id& token, const hash32& change,
                          spend_heard heard) {
  return setup_.spends->spend(
      token, change,
      [this, queue = setup_.queue, id = x.http.id, token, heard](result<spend_answer> how) {
        queue->post(
            [this, id, token, heard, how = std::move(how)] { (this->*heard)(id, token, how); });
      });
}

void gateway_state::spent(uint64_t http_id, const token_id& token,
                          const result<spend_answer>& how) {
  auto* x = find_http(http_id);
  bool fresh = how && *how == spend_answer::fresh;
  if (!how) note_ = spends_trouble + how.why().text;
  if (how && note_.starts_with(spends_trouble)) note_.clear();
  if (!x && fresh && !setup_.spends->settle(token, outcome::not_dispatched))
    note_ = "outcomes of requests are being lost";
  if (!x) return;  // its client has left
  if (!how)        // a ledger that isn't sure may have it: then its change is due
    return problem(*x, {.status = 503,
                        .title = "the token's spend could not be recorded",
                        .change = change_word::due});
  if (!fresh)
    return problem(
        *x, {.status = 403, .title = "the token was spent before", .change = change_word::none});
  ++count_.spent;
  x->spent = true;
  x->http.held.release();  // it is paid for
  place(*x);
}

/// The next of the nodes that the client drew, under a number of its own: what the one before may
/// still say is heard by nobody.
void gateway_state::place(exchange& x) {
  http_of_.erase(x.request);
  fill_random(std::as_writable_bytes(std::span(&x.request, 1)));
  http_of_[x.request] = x.http.id;
  x.placed = x.over = false;
  x.asked_ns = clerk_.now_ns();
  auto node = x.candidates.back();
  x.candidates.pop_back();
  self_->send(scheduler_, clerk_.write<schema::Place>(x.request, [&](schema::Place::Builder b) {
    b.setRequest(x.request);
    b.setNode(data_of(node));
  }));
}

void gateway_state::down(const caf::down_msg& d) {
  bool ours = d.source == scheduler_.address() || d.source == directory_.address();
  ours ? fail_all() : answerer_down(d);
}

void gateway_state::fail_all() {
  broken_ = true;
  std::vector<uint64_t> open;  // what is said in full goes on leaving
  for (const auto& [id, x] : exchanges_)
    if (!x->answer->ended()) open.push_back(id);
  for (uint64_t id : open) {
    auto& x = *find_http(id);
    fail(x, x.dispatched ? outcome::node_failed : outcome::not_dispatched,
         {503, "a part of the cluster broke; it starts anew"});
    drop(id, false);
  }
}

gateway_actor::behavior_type gateway(gateway_actor::stateful_pointer<gateway_state> self,
                                     gateway_setup setup, scheduler_actor scheduler,
                                     directory_actor directory) {
  auto& state = self->state;
  be_quiet(self, [&state](const caf::error&) { state.fail_all(); });
  self->set_down_handler([&state](caf::scheduled_actor*, caf::down_msg& d) { state.down(d); });
  state.begin(self, std::move(setup), std::move(scheduler), std::move(directory));
  return {
      [&state](const wire<schema::Placed>& m) { state.placed(m); },
      [&state](const wire<schema::Answer>& m) { state.answer(m); },
      [&state](const wire<schema::Lost>& m) { state.lost(m); },
      [&state](stirred) { state.read_queue(); },
      [&state](tick) { state.on_tick(); },
      [&state](const wire<schema::Publish>& m) { state.publish(m); },
  };
}

}  // namespace lethe
