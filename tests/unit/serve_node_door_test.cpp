// What an engine opens for the private path: once, under a living roster's key, for a paid token.
#include "runtime/crypto/sealed_message.hpp"
#include "tests/unit/serve_door.hpp"

namespace lethe {
namespace {

using namespace test;

TEST_F(NodeDoor, OpensWhatWasSealedToItAndPaidFor) {
  auto token = bought();
  EXPECT_EQ(open(sealed(node_, 7, token), token), "");
}

TEST_F(NodeDoor, ASealThatComesAgainIsRefused) {
  auto token = bought();
  auto message = sealed(node_, 7, token);
  EXPECT_EQ(open(message, token), "");
  EXPECT_EQ(open(message, token), "seal: it or its token was here before");
  EXPECT_EQ(whose_, sealed_call::fault::client);
}

TEST_F(NodeDoor, ATokenThatComesAgainUnderAnotherSealIsRefused) {
  auto token = bought();
  EXPECT_EQ(open(sealed(node_, 7, token), token), "");
  EXPECT_EQ(open(sealed(node_, 7, token), token), "seal: it or its token was here before");
}

TEST_F(NodeDoor, ATokenThatTheSealIsNotBoundToIsRefused) {
  auto message = sealed(node_, 7, bought());
  EXPECT_NE(open(message, bought()), "");
}

TEST_F(NodeDoor, TokensOfAnotherIssuerOrWithAnotherSignatureAreRefused) {
  auto stranger = bought(issuer_key::make());
  EXPECT_NE(open(sealed(node_, 7, stranger), stranger).find("no key that this roster knows"),
            std::string::npos);
  auto forged = bought();
  forged.signature[100] ^= std::byte{1};
  EXPECT_NE(open(sealed(node_, 7, forged), forged), "");
  auto token = bought();
  auto bytes = token.to_bytes();
  EXPECT_NE(open(bytes_view(sealed(node_, 7, token)), bytes_view(bytes).first(353)), "");
}

TEST_F(NodeDoor, TheLastRostersKeyOpensForItsGraceAndNotOneMillisecondMore) {
  auto old = bought(), late = bought(), fresh = bought();
  auto to_old = sealed(node_, 7, old), to_late = sealed(node_, 7, late);
  auto next = begin(8, 5000, 1000);
  door_->expire(5999);
  EXPECT_EQ(open(to_old, old), "");
  door_->expire(6000);
  EXPECT_EQ(open(to_late, late), "no such key");
  EXPECT_EQ(open(sealed(next, 8, fresh), fresh), "");
}

TEST_F(NodeDoor, OlderRostersOpenForTheirGraceUpToABound) {
  auto token = bought(), late = bought();
  auto message = sealed(node_, 7, token), other = sealed(node_, 7, late);
  begin(8, 0, 100'000);
  begin(9, 1, 100'000);
  EXPECT_EQ(open(message, token), "");
  for (uint32_t i = 0; i < node_door::keys_max; ++i) begin(10 + i, 2, 100'000);
  EXPECT_EQ(door_->keys(), node_door::keys_max);
  EXPECT_EQ(open(other, late), "no such key");
}

TEST_F(NodeDoor, ARosterThatIsAskedForAgainHasANewKey) {
  auto token = bought();
  auto message = sealed(node_, 7, token);
  begin(7);
  EXPECT_EQ(door_->keys(), 1u);
  EXPECT_EQ(open(message, token), "no such key");
}

TEST_F(NodeDoor, ASealOfAnotherEpochUnderTheSameKeyIsNotFound) {
  auto token = bought();
  EXPECT_EQ(open(sealed(node_, 8, token), token), "no such key");
}

TEST_F(NodeDoor, ItRemembersAsManyAsItWasToldAndForgetsNone) {
  for (int i = 0; i < 8; ++i) {
    auto token = bought();
    EXPECT_EQ(open(sealed(node_, 7, token), token), "") << i;
  }
  auto token = bought();
  EXPECT_NE(open(sealed(node_, 7, token), token), "");
  EXPECT_EQ(whose_, sealed_call::fault::node);  // so change is due
}

TEST_F(NodeDoor, ARefusalIsSignedForThatRequestAlone) {
  auto token = bought(), other = bought();
  auto message = sealed(node_, 7, token);
  auto said = door_->refuse(message, token.to_bytes(), refusal_reason::full);
  ASSERT_TRUE(said);
  auto binding = sealed_message::parse(message)->binding(token.hash());
  auto heard = verify_refusal(*said, node_.sigpk, binding);
  ASSERT_TRUE(heard) << heard.why().text;
  EXPECT_EQ(heard->reason, refusal_reason::full);
  EXPECT_EQ(heard->epoch, 7u);
  EXPECT_FALSE(
      verify_refusal(*said, node_.sigpk, sealed_message::parse(message)->binding(other.hash())));
  EXPECT_FALSE(door_->refuse(sealed(begin(9), 8, token), token.to_bytes(), refusal_reason::full));
}

TEST_F(NodeDoor, NoPrefixOfAMessageOpens) {
  auto token = bought();
  auto message = sealed(node_, 7, token);
  for (size_t n = 0; n < message.size(); ++n)
    ASSERT_NE(open(bytes_view(message).first(n), token.to_bytes()), "") << n;
  EXPECT_EQ(open(message, token), "");
}

}  // namespace
}  // namespace lethe
