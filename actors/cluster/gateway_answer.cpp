#include "actors/cluster/gateway.hpp"
#include "runtime/gateway/sealed_names.hpp"
#include "runtime/token/base64url.hpp"

namespace lethe {

namespace {

inner_problem turned_away(schema::Refusal why) {
  switch (why) {
    case schema::Refusal::FULL:
      return {.status = 429, .title = "the node is full"};
    case schema::Refusal::LEAVING:
      return {.status = 503, .title = "the cluster is going down"};
    case schema::Refusal::UNKNOWN_NODE:
      return {.status = 404, .title = "no node has that key, or any more"};
    case schema::Refusal::NOT_READY:
      break;
  }
  return {.status = 503, .title = "no engine is ready"};
}

}  // namespace

gateway_state::exchange* gateway_state::find(uint64_t request) {
  auto at = http_of_.find(request);
  return at == http_of_.end() ? nullptr : find_http(at->second);
}

gateway_state::exchange* gateway_state::find_http(uint64_t http_id) {
  auto at = exchanges_.find(http_id);
  return at == exchanges_.end() ? nullptr : at->second.get();
}

template <class Actor>
void gateway_state::cancel(uint64_t request, const Actor& at) {
  self_->send(at, clerk_.write<schema::Cancel>(
                      request, [&](schema::Cancel::Builder b) { b.setRequest(request); }));
}

void gateway_state::placed(const wire<schema::Placed>& m) {
  clerk_.read(m, [&](schema::Placed::Reader r) {
    exchange* x = find(r.getRequest());
    if (r.isAt() && (!x || x->settled)) {  // nobody waits any more; the place is free again
      cancel(r.getRequest(), scheduler_);
    } else if (r.isAt()) {
      dispatch(*x, r.getAt());
    } else if (x && !x->settled && !x->candidates.empty()) {
      place(*x);
    } else if (x && !x->settled) {
      fail(*x, outcome::not_dispatched, turned_away(r.getRefused().getReason()));
    }
  });
}

void gateway_state::dispatch(exchange& x, schema::Placed::At::Reader at) {
  x.placed = x.dispatched = true;
  self_->send(scheduler_, clerk_.write<schema::Submit>(x.request, [&](schema::Submit::Builder b) {
    b.setRequest(x.request);
    b.setEngine(at.getEngine());
    b.setEpoch(at.getEpoch());
    b.setSealed(data_of(x.sealed->message));
    b.setToken(data_of(x.sealed->token.to_bytes()));
  }));
}

void gateway_state::answer(const wire<schema::Answer>& m) {
  clerk_.read(m, [&](schema::Answer::Reader r) {
    exchange* x = find(r.getRequest());
    if (x && x->over) return;
    auto answerer = sender_of<request_actor>(self_);
    if (!x || !x->dispatched || x->settled) return cancel(r.getRequest(), answerer);
    // The scheduler tells nobody of an engine that is lost while it only pads.
    if (!x->answerer) self_->monitor(answerer);
    x->answerer = answerer;
    std::vector<std::byte> out;
    result<void> good;
    bhttp_field type{"content-type", sealed_names::response};
    if (!x->answer->begun()) good = x->answer->head(200, {&type, 1});
    auto piece = as_text(bytes_of(r.getSealed()));
    if (good) good = r.getLast() ? x->answer->end(piece, out) : x->answer->content(piece, out);
    if (r.getLast()) {
      x->over = true;  // it counts as delivered when the network has its last byte
      ++count_.answered;
    }
    write(*x, good, out);
  });
}

/// Sends what can leave; an answer that went wrong is cut, and it alone.
void gateway_state::write(exchange& x, const result<void>& good, std::vector<std::byte>& out) {
  uint64_t id = x.http.id;
  if (!good) {
    x.answer->begun_outside() ? server_->cut(id)
                              : refuse_outside(id, 502, "the answer is too large for one piece");
    return drop(id, true);
  }
  if (!out.empty() && !x.answer->begun_outside()) {
    x.answer->begin_outside();
    http_answer head{.status = 200, .content_type = std::string(x.answer->media_type())};
    if (x.answer->form() == ohttp_form::chunked)
      head.fields.emplace_back("Incremental", "?1");
    else
      head.content_length = out.size();
    head.fields.emplace_back("Cache-Control", "private, no-store");
    server_->begin(id, std::move(head));
  }
  x.credit.sent(out.size());
  if (!out.empty()) server_->write(id, as_text(out));
  if (x.answer->ended()) return server_->end(id);
  drained(id, 0);
}

void gateway_state::drained(uint64_t http_id, size_t bytes) {
  exchange* x = find_http(http_id);
  if (!x) return;
  x->credit.drained(bytes);
  if (!x->answerer) return;
  uint32_t due = x->credit.due();
  if (due == 0) return;
  self_->send(x->answerer, clerk_.write<schema::Credit>(x->request, [&](schema::Credit::Builder b) {
    b.setRequest(x->request);
    b.setPieces(due);
  }));
}

void gateway_state::lost(const wire<schema::Lost>& m) {
  clerk_.read(m, [&](schema::Lost::Reader r) {
    exchange* x = find(r.getRequest());
    if (!x || x->over) return;
    x->over = true;
    bool another = r.getReason() != schema::LossReason::BAD_SEAL && !x->candidates.empty() &&
                   !x->settled && !x->answer->begun();
    if (another) return place(*x);
    switch (r.getReason()) {
      case schema::LossReason::BAD_SEAL:
        // Whoever sealed it has spoilt it: nothing is due.
        return fail(*x, outcome::delivered, {400, "the seal does not open, or came again"});
      case schema::LossReason::ENGINE_FULL:
        return fail(*x, outcome::refused_by_node,
                    {.status = 429,
                     .title = "the node is full",
                     .refusal = to_base64url(bytes_of(r.getRefusal()))});
      case schema::LossReason::STALE:
        return fail(*x, outcome::refused_by_node, {503, "the roster is over; draw from the next"});
      case schema::LossReason::ENGINE_LOST:
        return node_lost(*x);
    }
  });
}

void gateway_state::node_lost(exchange& x) {
  fail(x, outcome::node_failed, {503, "the node was lost while it answered"});
}

/// Before an answer began it is told inside; after that all that can be done is to cut it.
void gateway_state::fail(exchange& x, outcome how, inner_problem why) {
  settle(x, how);
  if (x.answerer) cancel(x.request, x.answerer);  // it may live on, and only pad
  why.change = !x.spent                    ? change_word::absent
               : how == outcome::delivered ? change_word::none
                                           : change_word::due;
  if (!x.answer) return;
  if (!x.answer->begun()) return problem(x, std::move(why));
  uint64_t id = x.http.id;
  server_->cut(id);
  drop(id, false);
}

void gateway_state::problem(exchange& x, inner_problem why) {
  if (x.answer->begun()) return;
  ++count_.refused;
  std::vector<std::byte> out;
  auto good = x.answer->problem(why, out);
  write(x, good, out);
}

/// Once: the first word stays.
void gateway_state::settle(exchange& x, outcome how) {
  if (!x.spent || std::exchange(x.settled, true)) return;
  if (!setup_.spends->settle(x.token(), how)) note_ = "outcomes of requests are being lost";
}

/// One that had ended before it was watched is said to have ended for a reason unknown, and that
/// word overtakes its last pieces, which came before it: they are waited for.
void gateway_state::answerer_down(const caf::down_msg& d) {
  if (!d.reason) return;  // it has said all
  for (auto& [id, x] : exchanges_) {
    if (!x->answerer || x->answerer.address() != d.source || x->over) continue;
    if (d.reason != caf::exit_reason::unknown) return node_lost(*x);
    x->gone_ns = clerk_.now_ns();
    return;
  }
}

/// The exchange is over: its answer is with the network, or its client has left. If a node still
/// works on it, that may stop; where a node had it, nothing is due.
void gateway_state::drop(uint64_t http_id, bool and_cancel) {
  auto found = exchanges_.extract(http_id);
  if (found.empty()) return;
  exchange& x = *found.mapped();
  bool running = x.dispatched && !x.over;
  settle(x, x.dispatched ? outcome::delivered : outcome::not_dispatched);
  if (x.request != 0) http_of_.erase(x.request);
  if (!and_cancel || !running) return;
  cancel(x.request, scheduler_);
  if (x.answerer) cancel(x.request, x.answerer);  // which may only pad: nobody else knows it then
}

}  // namespace lethe
