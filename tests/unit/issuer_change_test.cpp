// Change for a spent token: one blinded request, whatever is asked, how often and by how many.

#include "tests/unit/issuer_house.hpp"

namespace lethe {
namespace {

using namespace test;

class IssuerChange : public ::testing::Test {
 protected:
  void SetUp() override {
    house.start();
    ann = house.add("ann", 1000);
    spent = house.tokens(ann);
  }
  pending_token pending() { return *pending_token::make(house.key(), a_challenge.digest()); }

  temporary_folder folder;
  issuer_house house{folder / "issuer"};
  std::string ann;
  std::vector<private_token> spent;
};

TEST_F(IssuerChange, IsATokenOfTheSameWorth) {
  auto p = pending();
  auto got = house.change(house.claim_of(spent[0], p.request()));
  ASSERT_EQ(got.status, 200) << got.body;
  EXPECT_EQ(got.field("Content-Type"), token_response_media);
  auto token = p.finish(house.key(), as_bytes(got.body));
  ASSERT_TRUE(token) << token.why().text;
  EXPECT_TRUE(verify_token(*token, house.key(), a_challenge.digest()));
  EXPECT_EQ(house.used("ann", 10), batch) << "change costs nothing";
  EXPECT_EQ(house.change(house.claim_of(*token, pending().request())).status, 200);
}

TEST_F(IssuerChange, IsTheSameHoweverOftenItIsAskedFor) {
  const auto claim = house.claim_of(spent[0], pending().request());
  auto hangs_up = house.connect();
  ASSERT_TRUE(hangs_up.send(
      house.posted("/change", "application/lethe-change", house.gateway_secret(), claim)));
  EXPECT_TRUE(eventually([&] { return house.runs->numbers().changed == 1; }));
  hangs_up.reset();
  auto first = house.change(claim);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(house.change(claim).body, first.body);
  EXPECT_EQ(house.change(house.claim_of(spent[0], pending().request())).status, 403);
  house.runs.reset();
  house.start();
  EXPECT_EQ(house.change(claim).body, first.body);
  EXPECT_EQ(house.change(house.claim_of(spent[0], pending().request())).status, 403);
  EXPECT_EQ(house.runs->numbers().changed, 0u) << "counted once";
}

TEST_F(IssuerChange, OfManyClaimsOneWins) {
  for (const auto& token : spent) {
    std::vector<bytes> claims;
    for (int i = 0; i < 4; ++i) claims.push_back(house.claim_of(token, pending().request()));
    std::atomic<int> good = 0, refused = 0;
    std::vector<std::thread> all;
    for (const auto& claim : claims)
      all.emplace_back([&] {
        int status = house.change(claim).status;
        good += status == 200;
        refused += status == 403;
      });
    for (auto& t : all) t.join();
    EXPECT_EQ(good, 1);
    EXPECT_EQ(refused, 3);
  }
}

TEST_F(IssuerChange, IsForTheGatewayOnly) {
  const auto claim = house.claim_of(spent[0], pending().request());
  const auto secret = house.gateway_secret();
  EXPECT_EQ(secret.size(), 64u);
  auto ask = [&](const std::string& s) {
    return house.post("/change", "application/lethe-change", s, claim).status;
  };
  EXPECT_EQ(ask(""), 401);
  EXPECT_EQ(ask(ann), 401);
  for (size_t i = 0; i < secret.size(); ++i) {
    auto wrong = secret;
    wrong[i] = wrong[i] == '0' ? '1' : '0';
    EXPECT_EQ(ask(wrong), 401) << i;
  }
  EXPECT_EQ(ask(secret.substr(1)), 401);
  EXPECT_EQ(ask(secret + "0"), 401);
  EXPECT_EQ(house.post("/change", "text/plain", secret, claim).status, 415);
  EXPECT_EQ(ask(secret), 200);
}

TEST_F(IssuerChange, IsForARealTokenAndARequestThatCanBeSigned) {
  const auto claim = house.claim_of(spent[0], pending().request());
  for (size_t cut : {size_t{0}, size_t{353}, size_t{354}, claim.size() - 1})
    EXPECT_EQ(house.change(bytes_view(claim).first(cut)).status, 422) << cut;
  EXPECT_EQ(house.change(joined({claim, as_bytes("0")})).status, 422);
  for (size_t at : {2, 34, 66, 98, 353})  // nonce, challenge, key, signature
    EXPECT_EQ(house.change(flipped(claim, at)).status, 403) << at;
  EXPECT_EQ(house.change(flipped(claim, 1)).status, 422);
  EXPECT_EQ(house.change(flipped(claim, 355)).status, 422);
  EXPECT_EQ(house.change(flipped(claim, 356)).status, 422) << "another key";
  auto large = claim;
  std::fill(large.begin() + 357, large.end(), std::byte{0xff});
  EXPECT_EQ(house.change(large).status, 422);
  const auto foreign = token_under(key_of_test());
  EXPECT_EQ(house.change(house.claim_of(foreign, pending().request())).status, 403);
  EXPECT_EQ(house.change(claim).status, 200) << "nothing of that was recorded";
}

}  // namespace
}  // namespace lethe
