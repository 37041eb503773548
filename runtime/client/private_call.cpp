#include "runtime/client/private_call.hpp"

#include <algorithm>
#include <condition_variable>

#include "runtime/bhttp/request.hpp"
#include "runtime/client/client_limits.hpp"
#include "runtime/client/sealed_answer.hpp"
#include "runtime/crypto/node_seal.hpp"
#include "runtime/crypto/refusal.hpp"
#include "runtime/crypto/sealed_message.hpp"
#include "runtime/gateway/sealed_names.hpp"
#include "runtime/log/draw.hpp"
#include "runtime/token/base64url.hpp"

namespace lethe {

namespace {

using shared_state = std::shared_ptr<const cluster_state>;

constexpr const char full_by_its_word[] = "the node that was drawn is full";
constexpr const char full_by_hearsay[] =
    "the gateway says that the node that was drawn is full, and shows no word of that node: no "
    "other is drawn by itself; ask again";

std::string short_name(const hash32& id) {
  return fmt::format("{:02x}{:02x}{:02x}{:02x}", uint8_t(id[0]), uint8_t(id[1]), uint8_t(id[2]),
                     uint8_t(id[3]));
}

/// Up to that long, at random, unless it is stopped.
void wait_a_while(uint32_t ms_max, const std::stop_token& stop) {
  if (ms_max == 0) return;
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::chrono::milliseconds(uniform_below(ms_max, fill_random)),
                 [] { return false; });
}

/// One request, through as many draws as it may take.
class calling {
 public:
  calling(const call_parts& with, const private_ask& what)
      : with_(with), what_(what), plain_(&memory_) {}

  private_answer run() {
    auto state = with_.view.at(with_.now_s(), what_.stop);
    if (!state) return failed("roster", std::move(state.end));
    state_ = *state;
    for (const auto& s : state_->steps) say(s);
    if (auto end = write_plain(); !end) return failed("seal", std::move(end));
    body_ = with_.exposure.hash_of(as_bytes(what_.body));
    while (true) {
      auto end = draw_and_ask();
      if (end || !redraw_) return done(std::move(end));
      last_ = std::move(end);
    }
  }

 private:
  void say(const check_step& s) {
    if (what_.observer) what_.observer(s);
  }
  void step(const char* name, std::string detail) { say({name, true, std::move(detail)}); }
  call_end failing(const char* name, call_end end) {
    say({name, false, end.why.text});
    return end;
  }
  private_answer failed(const char* name, call_end end) {
    return done(failing(name, std::move(end)));
  }
  private_answer done(call_end end) {
    static_cast<call_end&>(answer_) = std::move(end);
    return std::move(answer_);
  }

  /// What the node is to read, padded to a size that says little.
  call_end write_plain() {
    bhttp_field type{"content-type", "application/json"};
    plain_.reserve(what_.body.size() + 1024);
    auto ok = write_request(
        {.authority = "lethe", .path = what_.path, .fields = {&type, 1}, .content = what_.body},
        plain_);
    if (!ok) return {call_fault::request, ok.why()};
    const auto& buckets = state_->policy.request_buckets;
    auto fits = std::ranges::lower_bound(buckets, plain_.size());
    if (fits == buckets.end())
      return fault(call_fault::request, "seal: {} bytes; the policy takes {} with headers",
                   what_.body.size(), buckets.back());
    plain_.resize(*fits, '\0');
    return {};
  }

  call_end draw_and_ask() {
    redraw_ = false;
    if (auto end = count_draw(); !end) return end;
    auto key = state_->token_key_at(with_.now_s());
    if (!key) return not_drawn("token", {call_fault::trust, key.why()});
    auto taken = with_.tokens.take(*key, state_->challenge.digest(), state_->small_crowds);
    if (!taken) return not_drawn("token", {call_fault::here, taken.why()});
    if (!*taken) return not_drawn("token", no_token());
    offer_ = **taken;
    step("token", fmt::format("one of {}, taken at random", with_.tokens.count().tokens + 1));
    return seal_and_ask();
  }

  call_end no_token() const {
    size_t hidden = 0;
    for (const hash32& key : state_->small_crowds) hidden += with_.tokens.count(key);
    if (hidden == 0) return fault(call_fault::tokens, "token: the wallet has none; buy some");
    return fault(call_fault::tokens,
                 "token: the wallet's {} are of a key that fewer accounts bought under than the "
                 "trust file wants ([policy] buyers_min); buy some",
                 hidden);
  }

  call_end count_draw() {
    auto number = with_.exposure.draw(body_, state_->policy.redraws, with_.steady_s());
    if (!number) {
      if (last_.fault != call_fault::none) {
        last_.why.text += "; " + number.why().text;
        return failing("exposure", last_);
      }
      return failing("exposure", {call_fault::exposure, number.why()});
    }
    ++answer_.draws;
    drawn_.clear();
    for (uint32_t at : draw_nodes(state_->nodes, state_->policy.candidates))
      drawn_.push_back(state_->nodes.leaves[at].node);
    tell_draw(*number);
    return {};
  }

  void tell_draw(uint32_t number) {
    const uint32_t draws = 1 + state_->policy.redraws;
    const size_t nodes = state_->nodes.leaves.size(), k = drawn_.size();
    auto counted = fmt::format("draw {} of {} for this body", number, draws);
    if (k == 1) {
      step("exposure", std::move(counted));
      step("draw", fmt::format("node {} of {}, by capacity", short_name(drawn_[0].id), nodes));
      return;
    }
    std::string names;
    for (const auto& n : drawn_)
      names += fmt::format("{}{}", names.empty() ? "" : " and ", short_name(n.id));
    step("exposure",
         fmt::format("{}, {} nodes each: who has a share f of the capacity reads it with a chance "
                     "of at most 1 - (1 - f)^{}; k = {} promises no more",
                     counted, k, k * draws, k));
    step("draw", fmt::format("nodes {} of {}, by capacity, each on its own: any of them can open "
                             "the seal, and which one answers is not the client's choice",
                             names, nodes));
  }

  /// Nobody will ever hear of that draw.
  call_end not_drawn(const char* name, call_end end) {
    with_.exposure.take_back(body_);
    --answer_.draws;
    return failing(name, std::move(end));
  }

  call_end seal_and_ask() {
    auto sealed = seal_request(as_bytes(plain_), drawn_, state_->nodes.epoch, offer_.token.hash(),
                               state_->policy.chunk_bytes);
    if (!sealed) return unsent("seal", {call_fault::request, sealed.why()});
    step("seal", fmt::format("{} bytes in a bucket of {}", what_.body.size(), plain_.size()));
    sealed_answer answer(std::move(sealed->answer), what_.sink);
    auto end = ask(sealed->message, answer);
    answer_.began = answer.began();
    if (!end && !end.left) return unsent("answer", end);
    if (answer.refused() && end) return refused(*answer.refused(), sealed->message);
    if (end) return take_proof(answer);
    keep_account(answer);
    if (answer.why()) return unproven("answer", {call_fault::answer, *answer.why()}, answer);
    return unproven("answer", end, answer);
  }

  /// A whole answer has its price, proven or not: change for it would be a gift.
  void keep_account(const sealed_answer& answer) {
    // The answer is here: that the wallet's disk fails now is for its next use.
    if (answer.whole())
      (void)bool(with_.tokens.forget(offer_.token.nonce));
    else
      with_.tokens.leave_open(offer_.token.nonce);
  }
  call_end unproven(const char* name, call_end end, const sealed_answer& answer) {
    if (answer.whole()) end.why.text = "the answer is whole, but not proven: " + end.why.text;
    return failing(name, std::move(end));
  }

  /// The same bytes go again only if the gateway could not open them: then nothing was processed.
  ask_end ask(const std::vector<std::byte>& message, sealed_answer& answer) {
    const secret_bytes token = write_authorization(offer_.token);
    const std::string change = to_base64url(offer_.change.to_bytes());
    const bhttp_field fields[] = {{"content-type", sealed_names::request},
                                  {"authorization", token.text()},
                                  {sealed_names::change_field, change}};
    const inner_ask what{"POST", sealed_names::sealed_path, fields, as_text(message)};
    auto end = with_.channel.ask(state_->gateway_key, what, answer, what_.stop);
    if (end.fault != call_fault::stale_key) return end;
    auto anew = with_.view.refresh(with_.now_s(), what_.stop);
    if (!anew) return {anew.end, true};
    step("gateway keys", "they had changed; the same request goes to the new one");
    state_ = *anew;
    return with_.channel.ask(state_->gateway_key, what, answer, what_.stop);
  }

  call_end unsent(const char* name, call_end end) {
    if (auto ok = with_.tokens.put_back(offer_.token.nonce); !ok)
      end = {call_fault::here, ok.why()};
    return not_drawn(name, std::move(end));
  }

  call_end take_proof(sealed_answer& answer) {
    auto proof = answer.finish();
    keep_account(answer);
    if (!proof) return unproven("receipt", {call_fault::answer, proof.why()}, answer);
    if (state_->release && proof->release != *state_->release)
      return unproven(
          "receipt",
          fault(call_fault::answer, "receipt: the node runs another release than the log has"),
          answer);
    step("answer",
         fmt::format("status {} from node {}", answer.status(), short_name(answer.node()->id)));
    step("receipt", fmt::format("{} arenas, {} bytes wiped; signed by that node", proof->arenas,
                                proof->bytes_wiped));
    answer_.proof = *proof;
    return {};
  }

  call_end refused(const gateway_refusal& why, const std::vector<std::byte>& message) {
    if (auto end = settle_token(why); !end) return failing("refusal", end);
    auto end = refusal_end(why);
    if (end.fault != call_fault::busy) return failing("refusal", end);
    if (auto ok = check_node_refusal(why, message); !ok)
      return failing("refusal", {call_fault::trust, ok.why()});
    if (why.change != change_word::due) return failing("refusal", end);
    say({"refusal", !unsigned_full(why), end.why.text});
    if (what_.claim_at_once) claim_now();
    if (unsigned_full(why)) return end;
    wait_a_while(with_.redraw_wait_ms, what_.stop);
    if (what_.stop.stop_requested()) return fault(call_fault::cancelled, "the call was stopped");
    if (why.status != 429) {  // the roster may be over
      auto anew = with_.view.refresh(with_.now_s(), what_.stop);
      if (!anew) return failing("roster", anew.end);
      state_ = *anew;
    }
    redraw_ = true;
    return end;
  }

  call_end settle_token(const gateway_refusal& why) {
    if (why.change != change_word::none) {  // due, or not spent: a claim tells which
      with_.tokens.leave_open(offer_.token.nonce);
      return {};
    }
    auto ok = with_.tokens.forget(offer_.token.nonce);
    return ok ? call_end() : call_end{call_fault::here, ok.why()};
  }

  void claim_now() {
    auto end = claim_change(with_, offer_.token.nonce, what_.stop);
    say({"change", bool(end), end ? "a new token for the refused one" : end.why.text});
  }

  call_end refusal_end(const gateway_refusal& why) const {
    switch (why.status) {
      case 401:
        return token_refused(why);
      case 403:
        return fault(call_fault::tokens,
                     "token: it was spent before; was this wallet copied from another?");
      case 404:
        return fault(call_fault::busy, "the node that was drawn is not there any more");
      case 413:
        return fault(call_fault::request, "the gateway does not take a request so large");
      case 429:
        return fault(call_fault::busy, "{}",
                     unsigned_full(why) ? full_by_hearsay : full_by_its_word);
      case 503:
        return fault(
            call_fault::busy,
            "the gateway can't have it answered now: the node that was drawn was lost or is "
            "not ready, or spent tokens can't be recorded");
      default:
        return fault(call_fault::gateway, "the gateway answers {} to a sealed request{}",
                     why.status, why.title.empty() ? "" : ": \"" + why.title + "\"");
    }
  }

  call_end token_refused(const gateway_refusal& why) const {
    auto demands = read_demands(why.challenge);
    if (demands)
      for (const auto& d : *demands)
        if (d.challenge != state_->challenge)
          return fault(call_fault::trust,
                       "token: the gateway wants one for another challenge than the logged one");
    return fault(call_fault::tokens, "token: the gateway does not take it; its key may be retired");
  }

  /// A scheduler refuses before any node is asked: then nobody has signed it.
  static bool unsigned_full(const gateway_refusal& why) {
    return why.status == 429 && why.node_refusal.empty();
  }

  /// A node's word that the gateway shows is about this request, and of a node that was drawn.
  result<void> check_node_refusal(const gateway_refusal& why,
                                  const std::vector<std::byte>& message) const {
    if (why.node_refusal.empty()) return {};
    auto bytes = read_base64url(why.node_refusal);
    if (!bytes) return fail("refusal: no base64url");
    const auto sealed = sealed_message::parse(message);
    const hash32 binding = sealed->binding(offer_.token.hash());
    result<node_refusal> read = fail("refusal: of no node that was drawn");
    for (const auto& node : drawn_)
      if (read = verify_refusal(*bytes, node.sigpk, binding); read) break;
    if (!read) return read.why();
    if (read->epoch != sealed->epoch)
      return fail("refusal: of epoch {}; the request is of {}", read->epoch, sealed->epoch);
    if (why.status == 429 && read->reason != refusal_reason::full)
      return fail("refusal: the node did not say that it is full");
    return {};
  }

  const call_parts& with_;
  const private_ask& what_;
  wiping_memory memory_;
  std::pmr::string plain_;
  shared_state state_;
  exposure_budget::body_hash body_{};
  token_offer offer_;
  std::vector<node_public> drawn_;
  private_answer answer_;
  bool redraw_ = false;
  call_end last_;  // the refusal that a redraw follows
};

}  // namespace

private_answer call_privately(const call_parts& with, const private_ask& what) {
  return calling(with, what).run();
}

}  // namespace lethe
