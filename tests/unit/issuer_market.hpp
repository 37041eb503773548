#pragma once

#include <map>

#include "runtime/client/client_times.hpp"
#include "runtime/client/wallet.hpp"
#include "runtime/issuer/token_till.hpp"
#include "tests/unit/client_unsynced_disk.hpp"
#include "tests/unit/store_samples.hpp"
#include "tests/unit/token_samples.hpp"

/// Days of a market in some seconds: the till, the spent tokens and the wallets are the real ones,
/// the clock is not.
namespace lethe::test {

inline constexpr uint32_t accounts = 8;

struct purchase_seen {
  uint64_t at_s = 0;
  uint32_t account = 0;
  hash32 key_id{};
  std::vector<token_request> requests;
  std::vector<token_signature> signatures;
};
struct spend_seen {
  uint64_t at_s = 0;
  private_token token;
  token_request change;
  uint32_t bucket = 0;  // of the request's size
  bool failed = false;
};
/// Of a request that failed, or of a token that no request showed.
struct claim_seen {
  uint64_t at_s = 0;
  private_token spent;
  token_request request;
  token_signature signature{};
};

/// All that issuer and gateway see, in order.
struct all_seen {
  std::vector<purchase_seen> purchases;
  std::vector<spend_seen> spends;
  std::vector<claim_seen> claims;
  std::vector<token_key> keys;  // as they are published
};

enum class habit {
  steady,         // a batch a day at a time of the timer's, and requests whenever
  key_each,       // the same, but the issuer cheats: a key for each account
  spent_at_once,  // a token is bought when it is needed
  as_used,        // the proxy's rule: a batch some time after less than one is left
  in_bursts,      // the same, and requests in bursts of more than a batch
};

class market {
 public:
  static constexpr uint64_t day_s = 86'400, days = 5, epoch_s = days * day_s / 2;
  static constexpr uint64_t begin_s = 10 * epoch_s, end_s = begin_s + days * day_s;
  static constexpr uint32_t requests = 480;

  market(const temporary_folder& folder, habit how)
      : how_(how),
        batch_(how == habit::spent_at_once ? 1 : 16),
        accounts_(*account_store::open({folder / "accounts"})),
        changes_(*change_store::open({folder / "changes"})),
        spends_(open_spends({folder / "spent"})),
        till_({.epoch_s = uint32_t(epoch_s), .batch = batch_}, *accounts_, *changes_) {
    for (uint32_t a = 0; a < accounts; ++a) join(a);
    plan();
  }

  /// To the end of its days. What went wrong is a failure of the test.
  void run() {
    while (!plans_.empty() && !::testing::Test::HasFailure()) {
      auto next = plans_.extract(plans_.begin());
      now_s_ = next.key();
      next.mapped()();
    }
    check_ledger();
  }

  all_seen seen;
  std::vector<uint32_t> truth;  // the account behind each spend, which no matcher reads
  uint32_t dry = 0;             // requests that had no token

 private:
  struct client {
    std::string secret;
    unsynced_disk disk;
    std::unique_ptr<wallet> tokens;
    restocking stock;
    uint32_t wants = 0;  // batches, at the timer's next look
  };

  /// Each has an issuer's keys of its own if that cheats; else all have the first one's.
  const token_issuer& keys_of(uint32_t a) const { return keys_[how_ == habit::key_each ? a : 0]; }
  void join(uint32_t a) {
    if (keys_.empty() || how_ == habit::key_each) {
      auto& made = keys_.emplace_back();
      for (uint64_t since : {begin_s, begin_s + epoch_s})
        while (!made.add(issuer_key::make(), since)) continue;
      for (const auto& k : made.directory("/token-request", end_s).keys)
        seen.keys.push_back(*token_key::from_spki(k.key));
    }
    auto secret = accounts_->add("account-" + std::to_string(a), 1u << 20, {});
    ASSERT_TRUE(secret) << secret.why().text;
    auto& c = clients_[a];
    c.secret = std::string(secret->text());
    c.tokens = *wallet::open(c.disk.handle(), random_bytes(32, a), "wallet");
  }

  uint64_t below(uint64_t end) {
    return std::uniform_int_distribution<uint64_t>(0, end - 1)(random_);
  }
  randomness dice() {
    return [this](std::span<std::byte> to) {
      for (auto& b : to) b = std::byte(random_());
    };
  }
  uint64_t soon(uint64_t seconds) { return now_s_ + about(seconds, dice()); }
  void at(uint64_t when_s, std::function<void()> what) {
    if (when_s < end_s) plans_.emplace(when_s, std::move(what));
  }

  void plan() {
    for (uint32_t a = 0; a < accounts; ++a) {
      if (how_ != habit::spent_at_once) at(begin_s + below(stock_every_s), [=, this] { look(a); });
      at(begin_s + epoch_s + below(exchange_every_s), [=, this] { exchange(a, 4); });
      for (uint64_t day : {0, 0, 1, 2, 3, 4})
        if (how_ == habit::steady || how_ == habit::key_each)
          at(begin_s + day * day_s + below(day_s * 9 / 10), [=, this] { ++clients_[a].wants; });
    }
    for (uint32_t i = 0; i < requests; ++i) {
      if (how_ == habit::in_bursts && i % 20 == 0)
        burst_ = {begin_s + day_s + below(4 * day_s), below(accounts)};
      const bool bursts = how_ == habit::in_bursts;
      const uint64_t when =
          bursts ? burst_.first + below(600) : begin_s + day_s + below(4 * day_s - 10);
      const auto a = uint32_t(bursts ? burst_.second : below(accounts));
      const auto bucket = uint32_t(below(16) == 0 ? 2 : below(4) == 0);
      const bool fails = below(8) == 0;
      if (how_ == habit::spent_at_once) at(when, [=, this] { buy(a); });
      at(when + (how_ == habit::spent_at_once ? 5 : 0), [=, this] { ask(a, bucket, fails); });
    }
  }

  /// The timer of a client that keeps its stock.
  void look(uint32_t a) {
    auto& c = clients_[a];
    if (how_ == habit::in_bursts || how_ == habit::as_used)
      c.wants = c.stock.due(c.tokens->count().tokens, batch_, now_s_, dice());
    for (; c.wants > 0; --c.wants) buy(a);
    at(soon(stock_every_s), [=, this] { look(a); });
  }

  void buy(uint32_t a) {
    const auto& key = *keys_of(a).current(now_s_);
    auto purchase = *token_purchase::make(key, a_challenge.digest(), batch_);
    auto got = till_.sell_batch(clients_[a].secret, purchase.request(), keys_of(a), now_s_);
    ASSERT_EQ(got.status, 200) << got.why;
    auto bought = purchase.finish(key, got.body);
    ASSERT_TRUE(bought && bought->tokens.size() == batch_);
    ASSERT_TRUE(clients_[a].tokens->add(bought->tokens));
    purchase_seen one{now_s_, a, key.id(), *read_batch_request(purchase.request()), {}};
    const auto answers = *read_batch_response(got.body);
    for (const auto& s : answers) one.signatures.push_back(s.value());
    seen.purchases.push_back(std::move(one));
  }

  /// A request, as the gateway has it: verified, spent, ended.
  void ask(uint32_t a, uint32_t bucket, bool fails) {
    auto& tokens = *clients_[a].tokens;
    auto offer = *tokens.take(*keys_of(a).current(now_s_), a_challenge.digest());
    if (!offer) return void(++dry);
    const auto& t = offer->token;
    const auto* key = keys_of(a).redeemable(t.key_id, now_s_);
    ASSERT_TRUE(key && verify_token(t, *key, a_challenge.digest()));
    spend(t, offer->change, fails ? outcome::node_failed : outcome::delivered);
    seen.spends.push_back({now_s_, t, offer->change, bucket, fails});
    truth.push_back(a);
    if (!fails) return expect_ok(tokens.forget(t.nonce));
    tokens.leave_open(t.nonce);
    at(soon(claim_after_s), [=, this, nonce = t.nonce] { claim(a, nonce); });
  }
  void spend(const private_token& t, const token_request& change, outcome is) {
    ASSERT_TRUE(is_fresh(spend_now(*spends_, {t.key_id, t.nonce}, change.digest())));
    ASSERT_TRUE(spends_->settle({t.key_id, t.nonce}, is));
  }

  /// By the gateway, which knows that it is due, to the issuer, which signs it.
  void claim(uint32_t a, const hash32& nonce) {
    auto offer = clients_[a].tokens->offer_again(nonce);
    ASSERT_TRUE(offer) << offer.why().text;
    const auto& t = offer->token;
    ASSERT_TRUE(is_due(change_of(*spends_, {t.key_id, t.nonce}), offer->change.digest()));
    auto got = till_.change(joined({t.to_bytes(), offer->change.to_bytes()}), keys_of(a), now_s_);
    ASSERT_EQ(got.status, 200) << got.why;
    expect_ok(clients_[a].tokens->take_change(nonce, got.body));
    seen.claims.push_back({now_s_, t, offer->change, *read_token_response(got.body)});
  }

  /// A token of the key before, which no request shows: its claim spends it.
  void exchange(uint32_t a, int more) {
    auto& tokens = *clients_[a].tokens;
    auto taken = *tokens.take_leftover(*keys_of(a).current(now_s_), a_challenge.digest());
    if (!taken) return;
    tokens.leave_open(taken->token.nonce);
    spend(taken->token, taken->change, outcome::not_dispatched);
    ++exchanged_;
    claim(a, taken->token.nonce);
    if (more > 1) at(soon(exchange_every_s), [=, this] { exchange(a, more - 1); });
  }

  /// The gateway's store has all of it, and once.
  void check_ledger() {
    uint64_t kept = 0;
    for (const auto& key : seen.keys)
      kept += *answer_of<uint64_t>([&](auto done) { return spends_->count(key.id(), done); });
    EXPECT_EQ(kept, seen.spends.size() + exchanged_);
    for (size_t i = 0; i < seen.spends.size(); i += 37) {
      const auto& s = seen.spends[i];
      auto again = spend_now(*spends_, {s.token.key_id, s.token.nonce}, s.change.digest());
      EXPECT_TRUE(is_spent_before(again));
    }
  }

  static void expect_ok(const result<void>& how) { EXPECT_TRUE(how) << how.why().text; }

  const habit how_;
  const uint32_t batch_;
  std::mt19937_64 random_{20'260'101};
  std::unique_ptr<account_store> accounts_;
  std::unique_ptr<change_store> changes_;
  std::unique_ptr<spend_store> spends_;
  token_till till_;
  std::vector<token_issuer> keys_;
  std::array<client, accounts> clients_;
  std::multimap<uint64_t, std::function<void()>> plans_;
  std::pair<uint64_t, uint64_t> burst_;  // when, whose
  uint64_t now_s_ = begin_s, exchanged_ = 0;
};

}  // namespace lethe::test
