// Machines of the private path lose their power under load, and with it what they did not sync:
// no token is lost, none is spent twice, and no log or wallet goes back. LETHE_LOSSES says how
// often each (default 2; nightly 20), LETHE_SEED when and what.
#include "tests/e2e/power_disk.hpp"
#include "tests/e2e/private_losses.hpp"

namespace lethe {
namespace {

class PrivatePower : public PrivateLosses {
 protected:
  void SetUp() override {
    ::setenv("LETHE_TEST_DISKS", (folder_ / "disks").c_str(), 1);
    ::setenv("LD_PRELOAD", places::disk_library, 1);
    issuer_disk_ = on_issuer_ / "";
    gateway_disk_ = on_gateway_ / "";
    client_disk_ = on_client_ / "";
    PrivateLosses::SetUp();
  }
  void TearDown() override {
    ::unsetenv("LD_PRELOAD");
    ::unsetenv("LETHE_TEST_DISKS");
  }

  /// By turns all that was not synced is gone, and some of it.
  void lose_power(const power_disk& disk) {
    disk.lose_power(losses_++ % 4 < 2 ? nullptr : &random_);
  }
  void fall(running_cluster& part) override {
    ASSERT_NO_FATAL_FAILURE(kill_part(part));
    lose_power(is_gateway(part) ? on_gateway_ : on_issuer_);
  }
  void fall_and_rise(running_cluster& part) {
    ASSERT_NO_FATAL_FAILURE(fall(part));
    start_again(part);
    ASSERT_NO_FATAL_FAILURE(all_is_up());
  }
  finished fetch(const buyer& b, const std::string& what) {
    return run_lethe({"fetch", b.trust(), "--prompt", what});
  }
  /// The keys that the issuer shows, with the times from which they are used.
  std::string keys_shown() const {
    return http_ask(issuer_->port("issuer"), "/.well-known/private-token-issuer-directory").body;
  }

  power_disk on_issuer_{folder_ / "disks/issuer"}, on_gateway_{folder_ / "disks/gateway"},
      on_client_{folder_ / "disks/client"};
  unsigned losses_ = 0;
};

TEST_F(PrivatePower, NoTokenIsLostAndNoneIsSpentTwice) {
  const std::string keys = keys_shown();
  no_token_is_lost_and_none_is_spent_twice(2 * asked_for("LETHE_LOSSES", 2));
  EXPECT_TRUE(has(keys, "token-key"));
  EXPECT_EQ(keys_shown(), keys);
  auto verified = run_lethe({"log", "verify", gateway_file_, "--trust", trust_});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
}

/// The machine of a client loses its power while requests are under way: answers that nobody is
/// there to see are the one loss. What a command told is kept.
TEST_F(PrivatePower, AWalletNeverGoesBack) {
  const unsigned losses = asked_for("LETHE_LOSSES", 2), threads = 4;
  auto b = make_buyer_with("one", 4 + losses), late = make_buyer("two");
  auto copy = copy_of(b);
  on_client_.settle();
  books all;
  for (unsigned i = 0; i < losses; ++i) {
    running_proxy proxy(b.trust());
    askers asking(proxy.port(), threads, 100, false);
    wait_for_three_more(asking);
    pause_ms(unsigned(random_() % 500));
    proxy.kill();
    auto asked = asking.end();
    std::printf("asked: %s\n", asked.text().c_str());
    EXPECT_EQ(asked.spent_before, 0u);
    all.answered += asked.whole;
    all.unseen += threads;
    auto bought = run_lethe({"tokens", "buy", late.trust()});
    EXPECT_EQ(bought.exit_code, 0) << bought.err;
    lose_power(on_client_);
    EXPECT_EQ(tokens_of(late), batch_ * (i + 1));
    EXPECT_EQ(bought_by(late), batch_ * (i + 1));
  }
  expect_no_evidence(b);
  close(b, copy, all);
  std::printf("%s\n", all.text().c_str());
  EXPECT_EQ(all.wrong(), "") << all.text();
}

/// The controls: disks that say that they have what they don't.
TEST_F(PrivatePower, SpendsThatWereNotSyncedAreNoticed) {
  auto one = make_buyer_with("one", 1);
  auto copy = copy_of(one);
  on_gateway_.believe_no_sync_of("spends.db");
  for (const char* what : {"a", "b", "c"}) ASSERT_EQ(fetch(one, what).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(fall_and_rise(*gateway_));
  books all{.answered = 3};
  close(one, copy, all);
  EXPECT_EQ(all.wrong(), "a token was spent twice; ") << all.text();
}

TEST_F(PrivatePower, AQuotaThatWasNotSyncedIsNoticed) {
  on_issuer_.believe_no_sync_of("accounts.db");
  auto one = make_buyer("one");
  ASSERT_EQ(run_lethe({"tokens", "buy", one.trust()}).exit_code, 0);
  EXPECT_EQ(bought_by(one), batch_);
  ASSERT_NO_FATAL_FAILURE(fall_and_rise(*issuer_));
  EXPECT_EQ(tokens_of(one), batch_);
  EXPECT_EQ(bought_by(one), UINT64_MAX);  // its account is gone
}

TEST_F(PrivatePower, ALogThatWasNotSyncedIsNoticed) {
  auto one = make_buyer_with("one", 1);
  on_gateway_.believe_no_sync_of("gateway/gateway");
  ASSERT_NO_FATAL_FAILURE(kill_part(*gateway_));
  start_again(*gateway_);  // publishes a key of its own
  ASSERT_NO_FATAL_FAILURE(all_is_up());
  ASSERT_EQ(fetch(one, "Hello").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(fall(*gateway_));
  start_again(*gateway_);
  ASSERT_TRUE(gateway_->tells("ready")) << gateway_->errors();
  ASSERT_TRUE(roster_is_out());
  auto said = fetch(one, "Hello");
  EXPECT_NE(said.exit_code, 0);
  // Whichever it is by now: as long as before with other entries, or still shorter.
  EXPECT_TRUE(has(said.err, "log: fork") || has(said.err, "log: shrank")) << said.err;
}

TEST_F(PrivatePower, AWalletThatWasNotSyncedIsNoticed) {
  auto one = make_buyer_with("one", 1);
  auto copy = copy_of(one);
  on_client_.settle();
  on_client_.believe_no_sync_of("client/one");
  for (const char* what : {"a", "b", "c"}) ASSERT_EQ(fetch(one, what).exit_code, 0);
  on_client_.lose_power(nullptr);
  books all{.answered = 3};
  close(one, copy, all);
  EXPECT_EQ(all.wrong(), "a token came from nowhere; a token that was not spent was refused; ")
      << all.text();
}

}  // namespace
}  // namespace lethe
