#include "actors/sim/sim_client.hpp"

#include "actors/sim/expected_answer.hpp"
#include "runtime/bhttp/request.hpp"

namespace lethe::sim {

namespace {

constexpr std::chrono::milliseconds tick_every{20};
constexpr uint32_t credit_batch = limits::answer_window / 4;

std::string body_of(const wish& w, const std::string& model) {
  if (w.kind == wish::what::no_json) return "{\"model\":";
  std::string ids;
  for (uint32_t id : w.prompt) ids += fmt::format("{}{}", ids.empty() ? "" : ",", id);
  return fmt::format(
      R"({{"model":"{}","prompt":[{}],"max_tokens":{},"n":{},"stream":{},"temperature":0}})", model,
      ids, w.max_tokens, w.choices, w.stream);
}

sealed_request sealed_body(const std::string& body, const node_public& node, uint32_t epoch,
                           uint32_t chunk_bytes) {
  std::pmr::string plain;
  bhttp_field type{"content-type", "application/json"};
  auto written = write_request(
      {.authority = "lethe", .path = "/v1/completions", .fields = {&type, 1}, .content = body},
      plain);
  check(bool(written));
  auto sealed = seal_request(as_bytes(plain), {&node, 1}, epoch, {}, chunk_bytes);
  check(bool(sealed));
  return *std::move(sealed);
}

}  // namespace

wish draw_wish(dice& chance, const next_token& words, uint32_t context) {
  wish w;
  uint32_t prompt = uint32_t(chance.between(1, chance.once_in(3) ? 40 : 12));
  for (uint32_t i = 0; i < prompt; ++i) w.prompt.push_back(chance.one_of(words.plain()));
  w.max_tokens = uint32_t(chance.between(1, 30));
  w.choices = chance.once_in(6) ? uint32_t(chance.between(2, 4)) : 1;
  w.stream = !chance.once_in(4);
  if (chance.once_in(24)) w.kind = wish::what::no_json;
  if (chance.once_in(24)) {
    w.kind = wish::what::too_long;
    w.max_tokens = context;
  }
  if (chance.once_in(5)) w.leaves_after = uint32_t(chance.below(8));
  if (chance.once_in(6)) {
    w.pauses_after = uint32_t(chance.below(6));
    w.pause_ms = chance.between(10, chance.once_in(4) ? 5000 : 500);
  }
  return w;
}

void client_state::begin(face_actor::stateful_pointer<client_state> self, ledger* facts,
                         scheduler_actor scheduler, directory_actor directory, tracer* trace) {
  self_ = self;
  facts_ = facts;
  words_ = std::make_unique<next_token>(*facts->model, facts->stop_once_in);
  clerk_ = clerk(trace, actor_kind::face);
  scheduler_ = std::move(scheduler);
  directory_ = std::move(directory);
  on_tick();
}

void client_state::on_tick() {
  std::vector<uint64_t> ready;
  for (auto& [id, x] : open_)
    if (x.resumes_ms != 0 && now_ms() >= x.resumes_ms) ready.push_back(id);
  for (uint64_t id : ready) {
    auto& x = open_.at(id);
    x.resumes_ms = 0;
    x.what.pauses_after = UINT32_MAX;
    give_credit(id, x);
  }
  if (++ticks_ % 16 == 0) {
    auto ask =
        clerk_.write<schema::ControlAsk>(0, [](schema::ControlAsk::Builder b) { b.setStatus(); });
    self_->request(directory_, std::chrono::seconds(2), ask)
        .then([](const wire<schema::ControlAnswer>&) {},
              [this](caf::error&) { facts_->violated("the directory does not answer"); });
  }
  self_->delayed_send(face_actor(self_), tick_every, tick::value);
}

void client_state::start_wishes() {
  for (; !wishes.empty(); wishes.pop_front()) {
    uint64_t id = ++asked_;
    if (wishes.front().id != 0) id = wishes.front().id;
    auto& x = open_[id];
    x.what = std::move(wishes.front());
    self_->send(scheduler_, clerk_.write<schema::Place>(
                                id, [&](schema::Place::Builder b) { b.setRequest(id); }));
    leave_now(id, x, 0);
  }
}

template <class Actor>
void client_state::cancel(uint64_t id, const Actor& at) {
  self_->send(
      at, clerk_.write<schema::Cancel>(id, [&](schema::Cancel::Builder b) { b.setRequest(id); }));
}

/// Some clients leave; the face then tells the scheduler, if the request was sealed, and whoever
/// answers.
bool client_state::leave_now(uint64_t id, exchange& x, uint32_t messages) {
  if (x.what.leaves_after != messages) return false;
  bool sealed = x.opener.has_value();
  auto answerer = x.answerer;
  end(id, ending::cancelled);
  if (sealed) cancel(id, scheduler_);
  if (answerer) cancel(id, answerer);
  return true;
}

void client_state::end(uint64_t id, ending how) {
  facts_->ended(how);
  past_[id] = {how};
  open_.erase(id);
}

void client_state::placed(const wire<schema::Placed>& m) {
  clerk_.read(m, [&](schema::Placed::Reader r) {
    uint64_t id = r.getRequest();
    auto found = open_.find(id);
    if (found == open_.end()) {
      if (r.isAt()) cancel(id, scheduler_);
      return;
    }
    if (found->second.epoch != 0) facts_->violated("request {} is placed twice", id);
    if (!r.isAt()) return end(id, ending::turned_away);
    seal(id, found->second, r.getAt());
  });
}

void client_state::seal(uint64_t id, exchange& x, schema::Placed::At::Reader at) {
  uint32_t& latest = epochs_[at.getEngine()];
  if (at.getEpoch() < latest)
    facts_->violated("request {} is placed at epoch {} of engine {}, which has had {}", id,
                     at.getEpoch(), at.getEngine(), latest);
  latest = at.getEpoch();
  auto node = node_public::from_bytes(bytes_of(at.getNode()));
  if (!node) return facts_->violated("request {}: no key to seal to", id);
  std::string body = body_of(x.what, facts_->model->name);
  std::optional<sealed_request> sealed;
  auto submit = [&] {
    sealed = sealed_body(body, *node, at.getEpoch(), facts_->shape.chunk_bytes);
    return clerk_.write<schema::Submit>(id, [&](schema::Submit::Builder b) {
      b.setRequest(id);
      b.setEngine(at.getEngine());
      b.setEpoch(at.getEpoch());
      b.setSealed(data_of(sealed->message));
    });
  };
  auto message = submit();
  if (size_t bytes = message.frame.size(); bytes < x.what.sealed_bytes) {
    body.append(x.what.sealed_bytes - bytes, ' ');
    message = submit();
  }
  x.epoch = at.getEpoch();
  x.opener.emplace(std::move(sealed->answer));
  x.reader.emplace(std::pmr::get_default_resource());
  self_->send(scheduler_, message);
  leave_now(id, x, 1);
}

void client_state::answer(const wire<schema::Answer>& m) {
  clerk_.read(m, [&](schema::Answer::Reader r) {
    uint64_t id = r.getRequest();
    auto found = open_.find(id);
    if (found == open_.end()) {
      // On its way while the client left or heard of a loss; but an answer has one end.
      auto how = past_.at(id).how;
      if (how != ending::cancelled && how != ending::lost)
        facts_->violated("request {}: its answer goes on after its end", id);
      return cancel(id, sender_of<request_actor>(self_));
    }
    exchange& x = found->second;
    auto answerer = sender_of<request_actor>(self_);
    if (!x.answerer) self_->monitor(answerer);
    x.answerer = answerer;
    if (heard) heard(id, r.getSealed().size());
    if (r.getNumber() != x.pieces++) facts_->violated("request {}: a piece is missing", id);
    if (++x.unread > limits::answer_window)
      facts_->violated("request {}: more pieces than there is credit for", id);
    std::pmr::string opened;
    bool good = x.opener && x.opener->push(bytes_of(r.getSealed()), opened) &&
                x.reader->feed(opened, x.content);
    if (!good) return facts_->violated("request {}: a piece does not open", id);
    if (r.getLast()) return judge(id, x);
    ++x.taken;
    if (x.what.pauses_after == x.pieces) x.resumes_ms = now_ms() + x.what.pause_ms;
    if (leave_now(id, x, 1 + x.pieces)) return;
    if (x.resumes_ms == 0) give_credit(id, x);
  });
}

void client_state::give_credit(uint64_t id, exchange& x) {
  if (x.taken < credit_batch || !x.answerer) return;
  x.unread -= x.taken;
  self_->send(x.answerer, clerk_.write<schema::Credit>(id, [&](schema::Credit::Builder b) {
    b.setRequest(id);
    b.setPieces(std::exchange(x.taken, 0));
  }));
}

/// The last piece came: the receipt, and an answer that is right.
void client_state::judge(uint64_t id, exchange& x) {
  auto receipt = x.opener->finish();
  if (!receipt) return facts_->violated("request {}: {}", id, receipt.why().text);
  if (receipt->arenas == 0 || receipt->bytes_wiped == 0 || receipt->epoch != x.epoch)
    facts_->violated("request {}: its receipt tells of {} arenas, {} bytes, epoch {}", id,
                     receipt->arenas, receipt->bytes_wiped, receipt->epoch);
  if (!x.reader->finish()) return facts_->violated("request {}: its answer is cut off", id);
  auto how = judged(x);
  if (how == ending::served && x.what.kind != wish::what::good)
    facts_->violated("request {}: what is wrong was served", id);
  end(id, how);
}

ending client_state::judged(const exchange& x) {
  bool ok = x.reader->status() == 200;
  auto said = read_answer(x.content, ok && x.what.stream, x.what.choices);
  if (!said.form) {
    facts_->violated("an answer is neither one nor an error");
    return ending::failed;
  }
  if (said.error == "engine_lost") return ending::failed;
  if (!ok) {
    if (x.what.kind == wish::what::good)
      facts_->violated("a right request is refused: {}", said.error);
    return ending::refused;
  }
  auto right = answer_to(*facts_->model, *words_, x.what.prompt, x.what.max_tokens);
  for (uint32_t i = 0; i < x.what.choices; ++i) {
    if (said.choices[i].text != right.text)
      facts_->violated("an answer has {} bytes and is not the right one, which has {}",
                       said.choices[i].text.size(), right.text.size());
    if (said.reasons[i] != right.finish_reason)
      facts_->violated("an answer ends by \"{}\" and not by \"{}\"", said.reasons[i],
                       right.finish_reason);
  }
  return ending::served;
}

void client_state::lost(const wire<schema::Lost>& m) {
  clerk_.read(m, [&](schema::Lost::Reader r) {
    uint64_t id = r.getRequest();
    if (r.getReason() == schema::LossReason::STALE)
      facts_->violated("request {} went to an engine that it was not sealed to", id);
    if (r.getReason() == schema::LossReason::ENGINE_FULL)
      facts_->violated("request {} was admitted to an engine that is full", id);
    if (auto known = past_.find(id); known != past_.end()) {
      if (++known->second.losses > 1) facts_->violated("request {} is lost twice", id);
      return;
    }
    if (!open_.contains(id)) return facts_->violated("request {} is lost and was never asked", id);
    if (auto& answerer = open_.at(id).answerer) cancel(id, answerer);
    end(id, ending::lost);
    past_[id].losses = 1;
    // As the face does: whatever still runs need not.
    cancel(id, scheduler_);
  });
}

/// As the gateway does: of an engine that is lost while it only pads nobody else would tell.
void client_state::down(const caf::down_msg& d) {
  if (!d.reason) return;
  for (auto& [id, x] : open_)
    if (x.answerer && x.answerer.address() == d.source) return end(id, ending::lost);
}

face_actor::behavior_type client(face_actor::stateful_pointer<client_state> self, ledger* facts,
                                 scheduler_actor scheduler, directory_actor directory,
                                 tracer* trace) {
  self->set_default_handler(refuse_quietly);
  auto& state = self->state;
  self->set_down_handler([&state](caf::scheduled_actor*, caf::down_msg& d) { state.down(d); });
  state.begin(self, facts, std::move(scheduler), std::move(directory), trace);
  return {
      [&state](const wire<schema::Placed>& m) { state.placed(m); },
      [&state](const wire<schema::Answer>& m) { state.answer(m); },
      [&state](const wire<schema::Lost>& m) { state.lost(m); },
      [&state](stirred) { state.start_wishes(); },
      [&state](tick) { state.on_tick(); },
  };
}

}  // namespace lethe::sim
