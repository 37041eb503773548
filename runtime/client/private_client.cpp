#include "runtime/client/private_client.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "runtime/client/purchase.hpp"

namespace lethe {

namespace {

// A node may think for minutes before its first word.
constexpr http_client_limits limits_there{
    .body_bytes_max = uint64_t{1} << 30, .answer_ms = 600'000, .stall_ms = 120'000};
constexpr uint64_t refresh_least_s = 5, refresh_most_s = 300;
constexpr size_t exchanging_max = 8;  // more than that are open: nobody answers claims now
constexpr auto timer_step = std::chrono::milliseconds(500);

}  // namespace

private_client::private_client(trust_file trust, client_options options,
                               std::unique_ptr<http_client> http, std::unique_ptr<wallet> tokens)
    : trust_(std::move(trust)),
      options_(std::move(options)),
      http_(std::move(http)),
      wallet_(std::move(tokens)),
      channel_(*http_, trust_.relays, trust_.origin, options_.look_wait_ms) {}

bool may_pass(const call_end& end) {
  return end.fault == call_fault::relay || end.fault == call_fault::gateway ||
         end.fault == call_fault::stale_key || end.fault == call_fault::answer ||
         end.fault == call_fault::busy;
}

call_result<std::unique_ptr<private_client>> private_client::start(
    const std::filesystem::path& trust_path, client_options options) {
  auto trust = trust_file::read(trust_path);
  if (!trust) return call_end{call_fault::here, trust.why()};
  return start(*std::move(trust), std::move(options));
}

call_result<std::unique_ptr<private_client>> private_client::start(trust_file trust,
                                                                   client_options options) {
  auto here = [](const error& why) { return call_end{call_fault::here, why}; };
  auto http = http_client::start(limits_there, {trust.authorities});
  if (!http) return here(http.why());
  auto tokens = wallet::open(trust.wallet);
  if (!tokens) return here(tokens.why());
  std::unique_ptr<private_client> made(new private_client(std::move(trust), std::move(options),
                                                          *std::move(http), *std::move(tokens)));
  auto view = cluster_view::open(made->trust_, made->channel_, made->options_.steady_s);
  if (!view) return call_end{call_fault::trust, view.why()};
  made->view_ = *std::move(view);
  made->first_look_ = made->refresh({});
  const bool goes_on = made->options_.starts_unreached && may_pass(made->first_look_);
  if (!made->first_look_ && !goes_on) return call_end(made->first_look_);
  if (made->options_.on_a_timer)
    made->timer_ =
        std::jthread([c = made.get()](std::stop_token stop) { c->run(std::move(stop)); });
  return made;
}

call_parts private_client::parts() {
  return {*view_,
          channel_,
          *wallet_,
          exposure_,
          options_.now_s,
          options_.steady_s,
          options_.redraw_wait_ms};
}

private_client::numbers private_client::count() const {
  auto has = wallet_->count();
  auto state = view_->at(options_.now_s());
  if (!state) return {has.tokens, has.open, 0};
  for (const hash32& key : (*state)->small_crowds)
    has.tokens -= std::min(has.tokens, wallet_->count(key));
  return {has.tokens, has.open, (*state)->policy.token_batch};
}

call_result<size_t> private_client::buy() {
  auto state = view_->at(options_.now_s());
  if (!state) return state.end;
  return buy_batch(*http_, trust_, **state, *wallet_, options_.now_s());
}

private_client::claims private_client::claim_pending(std::stop_token stop) {
  claims done;
  for (const hash32& nonce : wallet_->claimable()) {
    auto end = claim_change(parts(), nonce, stop);
    if (end)
      ++done.changed;
    else if (end.fault == call_fault::tokens)
      ++done.none_due;
    else if (end.fault == call_fault::busy)
      ++done.later;
    else if (!done.why)
      done.why = end.why;
    if (stop.stop_requested()) break;
  }
  return done;
}

/// What a retired key signed is of no use: nobody redeems or changes it.
call_end private_client::refresh(std::stop_token stop) {
  auto state = view_->refresh(options_.now_s(), std::move(stop));
  const uint64_t age = state ? (*state)->policy.roster_age_max_s : 0;
  refresh_at_ = options_.steady_s() + about(std::clamp(age / 6, refresh_least_s, refresh_most_s));
  if (!state) return state.end;
  std::vector<hash32> live;
  for (const auto& key : (*state)->issuer.keys) live.push_back(sha256({key.key}));
  auto dropped = wallet_->retire(live);
  return dropped ? call_end() : call_end{call_fault::here, dropped.why()};
}

/// What fails here is tried again; whoever calls meanwhile is told why it fails.
void private_client::run(std::stop_token stop) {
  bool unreached = !first_look_;
  std::mutex mutex;
  std::condition_variable_any never;
  stock_at_ = options_.steady_s() + about(refresh_least_s);
  exchange_at_ = options_.steady_s() + about(exchange_every_s);
  while (true) {
    {
      std::unique_lock lock(mutex);
      never.wait_for(lock, stop, timer_step, [] { return false; });
    }
    if (stop.stop_requested()) return;
    if (options_.steady_s() >= refresh_at_) look_again(stop, unreached);
    claim_some(stop);
    if (options_.steady_s() >= exchange_at_) exchange_one();
    if (options_.keeps_stocked && options_.steady_s() >= stock_at_) restock();
  }
}

void private_client::look_again(std::stop_token stop, bool& unreached) {
  auto end = refresh(stop);
  if (!unreached || stop.stop_requested()) return;
  unreached = may_pass(end);
  if (options_.on_look) options_.on_look(end);
}

/// Each at a time of its own, some time after its request failed.
void private_client::claim_some(std::stop_token stop) {
  const uint64_t now = options_.steady_s();
  std::map<hash32, uint64_t> still;
  for (const hash32& nonce : wallet_->claimable()) {
    auto known = claim_at_.find(nonce);
    uint64_t at = known == claim_at_.end() ? now + about(claim_after_s) : known->second;
    if (now >= at && !stop.stop_requested()) {
      (void)claim_change(parts(), nonce, stop);
      at = now + about(claim_after_s);
    }
    still[nonce] = at;
  }
  claim_at_ = std::move(still);
}

/// A claim for a token that was never shown spends it, and its change is under the current key. One
/// at random each time, 720 a day: a wallet full of them in six of a key's seven days.
void private_client::exchange_one() {
  exchange_at_ = options_.steady_s() + about(exchange_every_s);
  if (wallet_->count().open >= exchanging_max) return;
  auto state = view_->at(options_.now_s());
  if (!state) return;
  auto key = (*state)->token_key_at(options_.now_s());
  if (!key) return;
  auto taken = wallet_->take_leftover(*key, (*state)->challenge.digest());
  if (taken && *taken) wallet_->leave_open((*taken)->token.nonce);
}

void private_client::restock() {
  stock_at_ = options_.steady_s() + about(stock_every_s);
  auto has = count();
  if (stock_.due(has.tokens, has.batch, options_.steady_s())) (void)buy();
}

}  // namespace lethe
