#include "actors/cluster/request_actor.hpp"

#include "runtime/base/wipe_stack.hpp"
#include "runtime/cluster/measures.hpp"
#include "runtime/serve/answer_ticks.hpp"

namespace lethe {

/// The step loop's hand on an actor: one message however often something changes before it is
/// read.
class stirrer final : public request_watcher {
 public:
  explicit stirrer(request_actor to) : to_(std::move(to)) {}
  void changed() override {
    if (!waiting_.exchange(true)) caf::anon_send(to_, stirred::value);
  }
  void read() { waiting_.store(false); }

 private:
  request_actor to_;
  std::atomic<bool> waiting_{false};
};

namespace {

/// Below an actor's turn, in bytes of its thread's stack: parsing, templates and compiled forms
/// lie in the first turns, and may go deep.
constexpr size_t first_turns = size_t{512} << 10, turns = size_t{32} << 10;

schema::Outcome outcome_of(sealed_call::fate f) {
  switch (f) {
    case sealed_call::fate::served:
      return schema::Outcome::SERVED;
    case sealed_call::fate::refused:
      return schema::Outcome::REFUSED;
    case sealed_call::fate::cancelled:
      return schema::Outcome::CANCELLED;
    case sealed_call::fate::turned_away:
      break;
  }
  return schema::Outcome::FAILED;
}

/// 0 where one of both never happened.
uint64_t us_between(uint64_t from_ns, uint64_t to_ns) {
  return from_ns == 0 || to_ns < from_ns ? 0 : (to_ns - from_ns) / 1000;
}

}  // namespace

void request_state::begin(request_actor::stateful_pointer<request_state> self,
                          const request_desk& desk, uint64_t id, const wire<schema::Submit>& submit,
                          face_actor client, engine_actor engine) {
  self_ = self;
  desk_ = desk;
  clerk_ = clerk(desk.trace, actor_kind::request, desk.slot);
  id_ = id;
  client_ = std::move(client);
  engine_ = std::move(engine);
  begun_ns_ = clerk_.now_ns();
  if (left_) return release(schema::Outcome::CANCELLED), end();
  stirrer_ = std::make_shared<stirrer>(request_actor(self));
  auto why = schema::LossReason::STALE;
  clerk_.read(submit, [&](schema::Submit::Reader r) {
    auto opened = open(r, why);
    if (opened) call_ = *std::move(opened);
  });
  if (call_) {
    tick_ = std::chrono::milliseconds(call_->shape().ticks() ? call_->shape().tick_ms : 0);
    if (tick_.count() > 0) wait_for_tick();
    return stir();
  }
  tell_lost(why);
  release(schema::Outcome::REFUSED);
  end();
}

/// If there was no room, with the node's word for it.
void request_state::tell_lost(schema::LossReason why) {
  self_->send(client_, clerk_.write<schema::Lost>(id_, [&](schema::Lost::Builder b) {
    b.setRequest(id_);
    b.setReason(why);
    if (refusal_) b.setRefusal(data_of(*refusal_));
  }));
}

result<std::unique_ptr<sealed_call>> request_state::open(schema::Submit::Reader r,
                                                         schema::LossReason& why) {
  const auto& engine = *desk_.engine;
  auto sealed = bytes_of(r.getSealed()), token = bytes_of(r.getToken());
  if (token.empty() && engine.tokens_only) return fail("request: nobody paid for it");
  auto whose = sealed_call::fault::client;
  if (token.empty()) {
    auto opened = sealed_call::open(engine.service, sealed, {}, stirrer_, whose);
    if (whose == sealed_call::fault::node) why = schema::LossReason::ENGINE_FULL;
    return opened;
  }
  auto key = engine.door.find(sealed);
  if (!key) return fail("request: sealed to a key that is not here");
  auto opened = node_door::open(*key, sealed, token, stirrer_, whose);
  why = whose == sealed_call::fault::client ? schema::LossReason::BAD_SEAL
                                            : schema::LossReason::ENGINE_FULL;
  bool full = opened ? (*opened)->how() == sealed_call::fate::turned_away
                     : whose != sealed_call::fault::client;
  if (full) refusal_ = engine.door.refuse(sealed, token, refusal_reason::full);
  return opened;
}

void request_state::stir() {
  if (!call_) return;
  stirrer_->read();
  call_->pump();
  send_pieces();
}

void request_state::wait_for_tick() {
  due_ = next_tick(desk_.ticks_from, std::max(self_->clock().now(), due_), tick_);
  self_->scheduled_send(request_actor(self_), due_, tick::value);
}

void request_state::on_tick() {
  if (!call_) return;
  wait_for_tick();
  if (window_ > 0) send_piece();  // else its client is slow: the tick is left out
  look_on();
}

void request_state::credit(const wire<schema::Credit>& m) {
  clerk_.read(m, [this](schema::Credit::Reader r) {
    window_ = std::min(window_ + r.getPieces(), limits::answer_window);
  });
  if (call_) send_pieces();
}

/// Also before it has begun: a cancel may be here before the request's own first message.
void request_state::cancel() {
  left_ = true;
  if (!call_) return;
  call_->cancel();
  stir();
}

/// Nobody cancels a request of a lost engine, or gives it credit: it would keep its arenas. One
/// that only pads goes too, as it would with its process: where the link is gone nobody could stop
/// it.
void request_state::engine_lost() {
  if (!released_) return cancel();
  end(caf::exit_reason::kill);
}

void request_state::send_pieces() {
  while (tick_.count() == 0 && window_ > 0 && send_piece()) {
  }
  look_on();
}

bool request_state::send_piece() {
  std::vector<std::byte> piece;
  if (!call_->next(piece)) return false;
  --window_;
  self_->send(client_, clerk_.write<schema::Answer>(id_, [&](schema::Answer::Builder b) {
    b.setRequest(id_);
    b.setNumber(number_++);
    b.setLast(call_->said_all());
    b.setSealed(data_of(piece));
  }));
  return true;
}

/// It is released when all is said. Where pieces wait for ticks that is when its arenas are gone:
/// others may have its place while it is padded, and its client watches it until it ends.
void request_state::look_on() {
  const bool stopped = call_->cancelled();
  if (stopped && !left_) {  // turned away
    // An engine that breaks ends, and with it every request.
    if (!desk_.engine->opened.serving->health()) return;
    tell_lost(schema::LossReason::ENGINE_FULL);
  }
  if (stopped) call_->forget();
  const bool over = stopped || call_->said_all();
  if (!released_ && (over || (tick_.count() > 0 && call_->forgotten())))
    release(left_ ? schema::Outcome::CANCELLED : outcome_of(call_->how()));
  if (over) end();
}

/// The arena is gone; the engine may count it out.
void request_state::release(schema::Outcome outcome) {
  released_ = true;
  desk_.engine.reset();
  api_report report = call_ ? call_->report() : api_report{};
  const auto& t = report.times;
  requests_took took;
  took.add(ended_request{.served = outcome == schema::Outcome::SERVED,
                         .prompt_tokens = report.prompt_tokens,
                         .answer_tokens = report.answer_tokens,
                         .arenas = report.arenas,
                         .bytes_wiped = report.bytes_wiped,
                         .first_token_us = us_between(begun_ns_, t.first_ns),
                         .whole_us = us_between(begun_ns_, clerk_.now_ns()),
                         .queue_us = us_between(t.asked_ns, t.begun_ns),
                         .prefill_us = us_between(t.begun_ns, t.first_ns),
                         .decode_us = us_between(t.first_ns, t.last_ns),
                         .between_tokens = t.between_tokens});
  self_->send(engine_, clerk_.write<schema::Release>(id_, [&](schema::Release::Builder b) {
    b.setRequest(id_);
    b.setEngine(desk_.slot);
    b.setEpoch(desk_.epoch);
    b.setOutcome(outcome);
    took.write(b.initTook());
  }));
}

void request_state::end(caf::error why) {
  call_.reset();
  // An actor that is watched remembers its watchers, and their memory with them, for all its life.
  self_->demonitor(engine_.address());
  self_->quit(std::move(why));
}

request_actor::behavior_type run_request(request_actor::stateful_pointer<request_state> self,
                                         request_desk desk, uint64_t id,
                                         wire<schema::Submit> submit, face_actor client,
                                         engine_actor engine) {
  be_quiet(self);
  auto& state = self->state;
  self->monitor(engine);
  self->set_down_handler([&state](caf::scheduled_actor*, caf::down_msg&) { state.engine_lost(); });
  self->send(request_actor(self), stirred::value);  // so that the seal is opened on its own turn
  bool begun = false;
  auto depth = [&state] { return state.has_said() ? turns : first_turns; };
  return {
      [=, &state](const wire<schema::Credit>& m) {
        clean_stack below(depth());
        state.credit(m);
      },
      [=, &state](const wire<schema::Cancel>&) {
        clean_stack below(depth());
        state.cancel();
      },
      [=, &state](stirred) mutable {
        clean_stack below(depth());
        if (begun) return state.stir();
        begun = true;
        state.begin(self, desk, id, submit, client, engine);
      },
      [=, &state](tick) {
        clean_stack below(depth());
        state.on_tick();
      },
  };
}

}  // namespace lethe
