// Whose token was spent? A matcher that has all that issuer and gateway store and could have seen
// must guess, and must not guess where they do their work badly.

#include "tests/unit/issuer_house.hpp"
#include "tests/unit/issuer_matcher.hpp"

namespace lethe {
namespace {

using namespace test;

/// How often every way of guessing is right by chance at most, all of them together once in 10^6.
size_t chance_most(size_t spends, size_t ways) {
  return most_by_chance(spends, 1.0 / accounts, 1e-6 / double(ways));
}
size_t sure_least(size_t spends) { return spends * 9 / 10; }

class IssuerUnlinked : public ::testing::Test {
 protected:
  temporary_folder folder;
};

void expect_chance(const market& days) {
  ASSERT_EQ(days.seen.spends.size(), market::requests);
  ASSERT_EQ(days.dry, 0u) << "who has no token can't be guessed";
  ASSERT_GT(days.seen.claims.size(), 40u);
  const matcher m(days.seen);
  const auto ways = m.all_ways();
  const size_t tries = ways.size() + 2;
  for (size_t i = 0; i < ways.size(); ++i)
    EXPECT_LE(right(ways[i], days.truth), chance_most(days.truth.size(), tries)) << "way " << i;
  // Where a guess by time is best: who buys within the timer's time of a spend.
  for (bool behind : {false, true}) {
    const auto near = m.near_purchases(stock_every_s * 3 / 2, behind);
    const auto by_time = behind ? m.by_time_after() : m.by_time_before();
    EXPECT_GT(near.size(), 10u);
    EXPECT_LE(right(by_time, days.truth, near), chance_most(near.size(), tries)) << behind;
  }
}

TEST_F(IssuerUnlinked, NobodyTellsWhoseTokenWasSpent) {
  market days(folder, habit::steady);
  days.run();
  expect_chance(days);
}

TEST_F(IssuerUnlinked, NorWhereAPurchaseFollowsUseSomeHoursLater) {
  market days(folder, habit::as_used);
  days.run();
  expect_chance(days);
}

TEST_F(IssuerUnlinked, ButWhoSpendsAtOnceIsTold) {
  market days(folder, habit::spent_at_once);
  days.run();
  EXPECT_GE(right(matcher(days.seen).by_time_before(), days.truth), sure_least(days.truth.size()));
}

TEST_F(IssuerUnlinked, ButAKeyForEachAccountIsATag) {
  market days(folder, habit::key_each);
  days.run();
  EXPECT_GE(right(matcher(days.seen).by_key(), days.truth), sure_least(days.truth.size()));
}

/// Not a promise: what a purchase tells of the hours before it (docs/threat-model.md).
TEST_F(IssuerUnlinked, ButPurchasesFollowUse) {
  market days(folder, habit::in_bursts);
  days.run();
  const size_t told = right(matcher(days.seen).by_time_after(), days.truth);
  RecordProperty("told", int(told));
  EXPECT_GT(told, chance_most(days.truth.size(), 1));
}

/// Sales and their spends, outside the issuer: as a client does that blinds with what `factor_seed`
/// says of an account and a count.
template <class Seed>
size_t told_by_factor(Seed factor_seed) {
  constexpr uint32_t tokens = 256;
  const issuer_key& key = key_of_test();
  all_seen seen;
  seen.keys.push_back(*token_key::from_spki(key.published().spki()));
  std::vector<uint32_t> truth;
  for (uint32_t i = 0; i < tokens; ++i) {
    const uint32_t account = i % accounts;
    hash32 nonce;
    std::ranges::copy(random_bytes(nonce.size(), 1000 + i), nonce.begin());
    auto factor = random_bytes(token_modulus_bytes, factor_seed(account, i));
    factor[0] = {};
    const auto salt = random_bytes(pss_salt_bytes, i);
    auto pending =
        *pending_token::make(key.published(), a_challenge.digest(), nonce, {salt, factor});
    auto made = *key.sign(pending.request().blinded);
    seen.purchases.push_back({i, account, key.published().id(), {pending.request()}, {made}});
    seen.spends.push_back({.at_s = tokens, .token = *pending.finish(key.published(), made)});
    truth.push_back(account);
  }
  return right(matcher(seen).by_factor(), truth);
}

TEST_F(IssuerUnlinked, ButABlindingUsedAgainIsATag) {
  EXPECT_GE(told_by_factor([](uint32_t account, uint32_t) { return account; }), sure_least(256));
  // The same sales with blindings of their own: no matcher has got better by the way they are made.
  EXPECT_LE(told_by_factor([](uint32_t, uint32_t i) { return i; }), chance_most(256, 1));
}

/// All bytes in an issuer's folder.
std::string bytes_in(const fs::path& at) {
  std::string all;
  for (const auto& entry : fs::directory_iterator(at)) {
    std::ifstream file(entry.path(), std::ios::binary);
    all.append(std::istreambuf_iterator<char>(file), {});
  }
  return all;
}

TEST_F(IssuerUnlinked, OfAPurchaseOnlyTheSumIsKept) {
  issuer_house house(folder / "issuer");
  house.start();
  const auto key = house.key();
  const auto secret = house.add("account-3", batch);
  auto purchase = *token_purchase::make(key, a_challenge.digest(), batch);
  auto got = house.buy(secret, purchase);
  ASSERT_EQ(got.status, 200) << got.body;
  const auto requests = *read_batch_request(purchase.request());
  const auto signatures = *read_batch_response(as_bytes(got.body));
  const auto spent = purchase.finish(key, as_bytes(got.body))->tokens.at(0);
  auto change = *pending_token::make(key, a_challenge.digest());
  auto made = house.change(house.claim_of(spent, change.request()));
  ASSERT_EQ(made.status, 200);
  for (bool runs : {true, false}) {
    if (!runs) house.runs.reset();
    const auto kept = bytes_in(folder / "issuer");
    auto holds = [&](bytes_view what) { return kept.find(as_text(what)) != kept.npos; };
    EXPECT_TRUE(holds(as_bytes("account-3")));
    EXPECT_TRUE(holds(spent.nonce)) << "so that it is changed once";
    EXPECT_FALSE(holds(bytes_view(change.request().blinded).first(16)));
    EXPECT_FALSE(holds(as_bytes(made.body).first(16)));
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_FALSE(holds(bytes_view(requests[i].blinded).first(16)));
      EXPECT_FALSE(holds(bytes_view(*signatures.at(i)).first(16)));
    }
    EXPECT_FALSE(holds(as_bytes(secret).subspan(22)));
  }
}

}  // namespace
}  // namespace lethe
