#include "actors/cluster/face.hpp"

#include <algorithm>

#include "runtime/bhttp/request.hpp"
#include "runtime/crypto/random.hpp"
#include "runtime/http/bearer.hpp"

namespace lethe {

namespace {

constexpr std::chrono::milliseconds tick_every{500};
constexpr uint64_t place_patience_ns = 5'000'000'000;

api_error unavailable(const char* code, std::string message, uint32_t retry_after_s) {
  return {.status = 503,
          .type = "server_error",
          .code = code,
          .message = std::move(message),
          .retry_after_s = retry_after_s};
}

api_error cluster_broken() {
  return unavailable("cluster_broken", "a part of the cluster broke; it starts anew", 1);
}

api_error turned_away(schema::Refusal why, uint32_t retry_after_s) {
  switch (why) {
    case schema::Refusal::FULL:
      return {.status = 429,
              .type = "rate_limit_error",
              .code = "cluster_full",
              .message = "every engine's queue is full; try again later",
              .retry_after_s = retry_after_s};
    case schema::Refusal::LEAVING:
      return unavailable("cluster_leaving", "the cluster is going down", retry_after_s);
    case schema::Refusal::NOT_READY:
    case schema::Refusal::UNKNOWN_NODE:
      break;
  }
  return unavailable("not_ready", "no engine is ready yet; see /readyz", retry_after_s);
}

/// What `lethe trace follow` takes. In the lab clients may know it.
std::pair<std::string, std::string> traced_as(uint64_t request) {
  return {"X-Request-Id", fmt::format("{:016x}", request)};
}

api_error lost_error(schema::LossReason why) {
  if (why == schema::LossReason::ENGINE_FULL) return turned_away(schema::Refusal::FULL, 1);
  return unavailable("engine_lost", "the engine was lost while it answered; ask again", 1);
}

}  // namespace

void face_state::begin(face_actor::stateful_pointer<face_state> self, face_setup setup,
                       scheduler_actor scheduler, directory_actor directory) {
  self_ = self;
  setup_ = std::move(setup);
  clerk_ = clerk(setup_.trace, actor_kind::face);
  scheduler_ = std::move(scheduler);
  directory_ = std::move(directory);
  self_->monitor(scheduler_);
  self_->monitor(directory_);
  setup_.queue->wake(face_actor(self));
  on_tick();
}

/// A scheduler that says nothing is no reason to wait for ever.
void face_state::on_tick() {
  uint64_t now = clerk_.now_ns();
  std::vector<uint64_t> silent;
  for (const auto& [id, x] : exchanges_)
    if (!x.placed && now - x.asked_ns > place_patience_ns) silent.push_back(id);
  for (uint64_t id : silent)
    fail(exchanges_.at(id), unavailable("no_answer", "the scheduler does not answer", 1));
  self_->delayed_send(face_actor(self_), tick_every, tick::value);
}

void face_state::read_queue() {
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
    }
  }
}

void face_state::refuse(uint64_t http_id, const api_error& why, uint64_t request) {
  http_answer head{.status = why.status};
  if (request != 0) head.fields.push_back(traced_as(request));
  if (why.retry_after_s > 0)
    head.fields.emplace_back("Retry-After", std::to_string(why.retry_after_s));
  if (why.status == 401) head.fields.emplace_back("WWW-Authenticate", "Bearer");
  server_->answer(http_id, std::move(head), to_json(why));
}

void face_state::arrived(http_request r) {
  bool asks = r.head.path == "/v1/chat/completions" || r.head.path == "/v1/completions";
  bool api = r.listener == setup_.api_listener;
  if (api && r.head.path.starts_with("/v1/"))
    if (auto why = check_key(r)) return refuse(r.id, *why);
  if (!asks || !api) return look(r);
  if (r.head.method != "POST")
    return refuse(r.id, {.status = 405, .code = "method_not_allowed", .message = "use POST"});
  if (broken_) return refuse(r.id, cluster_broken());
  place(std::move(r));
}

/// Pages about the cluster itself; the request holds nothing of a user.
void face_state::look(const http_request& r) {
  if (!is_face_page(r.head.path, r.listener == setup_.api_listener))
    return refuse(r.id, {.status = 404, .code = "not_found", .message = "there is no such path"});
  if (r.head.method != "GET" && r.head.method != "HEAD")
    return refuse(r.id, {.status = 405, .code = "method_not_allowed", .message = "use GET"});
  auto ask =
      clerk_.write<schema::ControlAsk>(0, [](schema::ControlAsk::Builder b) { b.setStatus(); });
  auto say = [this, id = r.id,
              path = std::string(r.head.path)](const wire<schema::ControlAnswer>& m) {
    auto page = face_page(path, m, gate_);
    server_->answer(id, {.status = page.status, .content_type = page.content_type}, page.body);
  };
  self_->request(directory_, std::chrono::seconds(2), ask).then(say, [say](caf::error&) {
    say({});
  });
}

api_refusal face_state::check_key(const http_request& r) const {
  if (setup_.api_keys.empty()) return {};
  std::string_view given = bearer_of(r.head);
  bool known = false;
  for (const auto& key : setup_.api_keys)
    known |= key.size() == given.size() && CRYPTO_memcmp(key.data(), given.data(), key.size()) == 0;
  if (known) return {};
  return api_error{.status = 401,
                   .code = "invalid_api_key",
                   .message = "the listener wants an API key: Authorization: Bearer KEY"};
}

void face_state::place(http_request r) {
  uint64_t http_id = r.id, request = 0;
  fill_random(std::as_writable_bytes(std::span(&request, 1)));
  exchanges_.emplace(
      http_id, exchange{.http = std::move(r), .request = request, .asked_ns = clerk_.now_ns()});
  http_of_[request] = http_id;
  self_->send(scheduler_, clerk_.write<schema::Place>(
                              request, [&](schema::Place::Builder b) { b.setRequest(request); }));
}

face_state::exchange* face_state::find(uint64_t request) {
  auto at = http_of_.find(request);
  return at == http_of_.end() ? nullptr : &exchanges_.at(at->second);
}

void face_state::placed(const wire<schema::Placed>& m) {
  clerk_.read(m, [&](schema::Placed::Reader r) {
    exchange* x = find(r.getRequest());
    if (x) x->placed = true;
    if (!x) {
      // The client left before; the place is free again.
      if (r.isAt())
        self_->send(scheduler_,
                    clerk_.write<schema::Cancel>(r.getRequest(), [&](schema::Cancel::Builder b) {
                      b.setRequest(r.getRequest());
                    }));
    } else if (r.isAt()) {
      seal(*x, r.getAt());
    } else {
      fail(*x, turned_away(r.getRefused().getReason(), r.getRefused().getRetryAfterS()));
    }
  });
}

void face_state::seal(exchange& x, schema::Placed::At::Reader at) try {
  auto node = node_public::from_bytes(bytes_of(at.getNode()));
  if (!node) return fail(x, lost_error(schema::LossReason::STALE));
  auto* memory = x.http.memory.resource();
  std::pmr::string plain(memory);
  bhttp_field type{"content-type", "application/json"};
  auto written = write_request({.authority = "lethe",
                                .path = x.http.head.path,
                                .fields = {&type, 1},
                                .content = x.http.body},
                               plain);
  if (!written) return fail(x, {.status = 400, .message = written.why().text});
  auto sealed = seal_request(as_bytes(plain), {&*node, 1}, at.getEpoch(), {});
  if (!sealed)
    return fail(x, {.status = 413, .code = "request_too_large", .message = sealed.why().text});
  x.opener.emplace(std::move(sealed->answer));
  x.reader.emplace(memory);
  self_->send(scheduler_, clerk_.write<schema::Submit>(x.request, [&](schema::Submit::Builder b) {
    b.setRequest(x.request);
    b.setEngine(at.getEngine());
    b.setEpoch(at.getEpoch());
    b.setSealed(data_of(sealed->message));
  }));
} catch (const std::bad_alloc&) {
  fail(x, {.status = 413,
           .code = "request_too_large",
           .message = "the request does not fit its memory"});
}

void face_state::answer(const wire<schema::Answer>& m) {
  clerk_.read(m, [&](schema::Answer::Reader r) {
    exchange* x = find(r.getRequest());
    if (!x || !x->opener) return;
    x->answerer = sender_of<request_actor>(self_);
    open(*x, bytes_of(r.getSealed()), r.getLast());
  });
}

void face_state::open(exchange& x, bytes_view sealed, bool last) try {
  auto* memory = x.http.memory.resource();
  std::pmr::string opened(memory), content(memory);
  bool good = bool(x.opener->push(sealed, opened)) && bool(x.reader->feed(opened, content));
  // An answer is whole when its receipt is there, whatever HTTP's own end says.
  if (good && last) good = bool(x.opener->finish()) && bool(x.reader->finish());
  if (!good) return fail(x, lost_error(schema::LossReason::STALE));
  if (!x.begun && x.reader->has_head()) begin_answer(x);
  x.credit.sent(content.size());
  if (!content.empty()) server_->write(x.http.id, content);
  if (x.to_pass) *x.to_pass -= std::min<uint64_t>(*x.to_pass, content.size());
  if (last) return server_->end(x.http.id);
  give_credit(x);
} catch (const std::bad_alloc&) {
  fail(x, lost_error(schema::LossReason::STALE));
}

void face_state::begin_answer(exchange& x) {
  http_answer head{.status = int(x.reader->status())};
  head.fields.push_back(traced_as(x.request));
  for (const auto& f : x.reader->fields()) {
    if (f.name == "content-type") head.content_type = f.value;
    if (f.name == "retry-after") head.fields.emplace_back("Retry-After", f.value);
    if (f.name == "content-length")
      x.to_pass = head.content_length = std::strtoull(f.value.data(), nullptr, 10);
  }
  x.streams = head.content_type == "text/event-stream";
  if (x.streams) head.fields.emplace_back("Cache-Control", "no-cache");
  x.begun = true;
  server_->begin(x.http.id, std::move(head));
}

void face_state::drained(uint64_t http_id, size_t bytes) {
  auto found = exchanges_.find(http_id);
  if (found == exchanges_.end()) return;
  found->second.credit.drained(bytes);
  give_credit(found->second);
}

void face_state::give_credit(exchange& x) {
  if (!x.answerer) return;
  uint32_t due = x.credit.due();
  if (due == 0) return;
  self_->send(x.answerer, clerk_.write<schema::Credit>(x.request, [&](schema::Credit::Builder b) {
    b.setRequest(x.request);
    b.setPieces(due);
  }));
}

void face_state::lost(const wire<schema::Lost>& m) {
  clerk_.read(m, [&](schema::Lost::Reader r) {
    if (exchange* x = find(r.getRequest())) fail(*x, lost_error(r.getReason()));
  });
}

/// Without scheduler or directory nobody would tell of a request that is lost; nor will a face that
/// broke. The process ends soon.
void face_state::fail_all() {
  broken_ = true;
  while (!exchanges_.empty()) fail(exchanges_.begin()->second, cluster_broken());
}

/// Ends with an error: as an answer, or inside the stream that has begun.
void face_state::fail(exchange& x, const api_error& why) {
  uint64_t id = x.http.id;
  if (!x.begun) {
    refuse(id, why, x.request);
  } else {
    if (x.streams) server_->write(id, "data: " + to_json(why) + "\n\n");
    server_->end(id);  // where a length was promised, the server cuts the connection
  }
  drop(id, true);
}

void face_state::drop(uint64_t http_id, bool cancel) {
  auto found = exchanges_.extract(http_id);
  if (found.empty()) return;
  exchange& x = found.mapped();
  http_of_.erase(x.request);
  if (!cancel || !x.opener) return;
  // Who has a whole answer leaves: what is left of it, its receipt, needs only room.
  if (x.answerer && x.to_pass == 0)
    return self_->send(x.answerer,
                       clerk_.write<schema::Credit>(x.request, [&](schema::Credit::Builder b) {
                         b.setRequest(x.request);
                         b.setPieces(limits::answer_window);
                       }));
  self_->send(scheduler_, clerk_.write<schema::Cancel>(x.request, [&](schema::Cancel::Builder b) {
    b.setRequest(x.request);
  }));
}

face_actor::behavior_type face(face_actor::stateful_pointer<face_state> self, face_setup setup,
                               scheduler_actor scheduler, directory_actor directory) {
  auto& state = self->state;
  be_quiet(self, [&state](const caf::error&) { state.fail_all(); });
  self->set_down_handler([&state](caf::scheduled_actor*, caf::down_msg&) { state.fail_all(); });
  state.begin(self, std::move(setup), std::move(scheduler), std::move(directory));
  return {
      [&state](const wire<schema::Placed>& m) { state.placed(m); },
      [&state](const wire<schema::Answer>& m) { state.answer(m); },
      [&state](const wire<schema::Lost>& m) { state.lost(m); },
      [&state](stirred) { state.read_queue(); },
      [&state](tick) { state.on_tick(); },
  };
}

}  // namespace lethe
