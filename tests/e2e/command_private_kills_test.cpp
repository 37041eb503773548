// Gateway and issuer die at any moment under load, and start again where they were: no token is
// lost, none is spent twice. LETHE_KILLS says how often (default 4; nightly 100), LETHE_SEED when.
#include "tests/e2e/private_losses.hpp"

namespace lethe {
namespace {

using PrivateKills = PrivateLosses;

TEST_F(PrivateKills, NoTokenIsLostAndNoneIsSpentTwice) {
  no_token_is_lost_and_none_is_spent_twice(asked_for("LETHE_KILLS", 4));
}

TEST_F(PrivateKills, AGatewayThatStartsWithoutItsIssuerServes) {
  auto one = make_buyer_with("one", 1);
  const uint64_t before = gateway_count("roster");
  ASSERT_NO_FATAL_FAILURE(kill_part(*issuer_));
  ASSERT_NO_FATAL_FAILURE(kill_part(*gateway_));
  start_again(*gateway_);
  ASSERT_TRUE(roster_is_out(before)) << gateway_->errors();
  auto said = run_lethe({"fetch", one.trust(), "--prompt", "Hello"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
}

/// The control of the first test: a gateway that comes back without its spends.
TEST_F(PrivateKills, SpendsThatAreForgottenAreNoticed) {
  auto one = make_buyer_with("one", 1);
  auto copy = copy_of(one);
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(run_lethe({"fetch", one.trust(), "--prompt", std::to_string(i)}).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(kill_part(*gateway_));
  for (const char* end : {"", "-wal", "-shm"})
    std::filesystem::remove(folder_ / "gateway/spends.db" + end);
  start_again(*gateway_);
  ASSERT_NO_FATAL_FAILURE(all_is_up());
  books all{.answered = 3};
  close(one, copy, all);
  EXPECT_EQ(all.wrong(), "a token was spent twice; ") << all.text();
  EXPECT_EQ(all.copy.whole, 16u);
  EXPECT_EQ(all.rest.spent_before, 13u);
}

}  // namespace
}  // namespace lethe
