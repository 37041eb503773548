#include "runtime/token/token_challenge.hpp"

#include "runtime/token/auth_header.hpp"
#include "runtime/token/base64url.hpp"
#include "runtime/token/private_token.hpp"
#include "runtime/token/token_limits.hpp"
#include "tests/unit/token_samples.hpp"

namespace lethe {
namespace {

using namespace test;
using simdjson::dom::element;

class TokenAuthVectors : public ::testing::Test {
 protected:
  void SetUp() override {
    LETHE_NEEDS_PROTOCOL_VECTORS();
    auto path = protocol_vectors() / "privacypass-auth-rfc9577.json";
    ASSERT_FALSE(parser_.load(path.string()).get(root_));
  }
  simdjson::dom::parser parser_;
  element root_;
};

/// Writing and reading, and reading with a part missing.
void expect_codec(const token_challenge& c) {
  const bytes wire = c.to_bytes();
  auto read = token_challenge::from_bytes(wire);
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(*read, c);
  for (size_t size = 0; size < wire.size(); ++size)
    EXPECT_FALSE(token_challenge::from_bytes(bytes_view(wire).first(size))) << size;
  EXPECT_FALSE(token_challenge::from_bytes(joined({wire, bytes(1)})));
}

TEST_F(TokenAuthVectors, WhatIsSignedForEachChallenge) {
  if (IsSkipped()) return;
  size_t seen = 0, other_types = 0;
  for (const char* list : {"token_vectors", "token_vectors_ts"})
    for (element v : root_[list]) {
      const bytes wanted = hex_of(v, "token_authenticator_input");
      if (std::string_view(v["token_type"]) != "0002") {
        ++other_types;
        EXPECT_FALSE(private_token::from_bytes(wanted));
        continue;
      }
      token_challenge c{.issuer = std::string(as_text(hex_of(v, "issuer_name"))),
                        .origin = std::string(as_text(hex_of(v, "origin_info")))};
      if (bytes context = hex_of(v, "redemption_context"); !context.empty())
        std::ranges::copy(context, c.redemption_context.emplace().begin());
      expect_codec(c);
      private_token t{.challenge_digest = c.digest()};
      std::ranges::copy(hex_of(v, "nonce"), t.nonce.begin());
      std::ranges::copy(hex_of(v, "token_key_id"), t.key_id.begin());
      EXPECT_EQ(copy_of(bytes_view(t.to_bytes()).first(98)), wanted);
      ++seen;
    }
  EXPECT_EQ(seen, 10u);
  EXPECT_EQ(other_types, 1u);
}

TEST_F(TokenAuthVectors, TheHeadersAndTheirChallengesOfType2) {
  if (IsSkipped()) return;
  size_t seen = 0, ours = 0;
  for (element v : root_["header_vectors"]) {
    auto read = read_demands(std::string_view(v["www_authenticate"]));
    ASSERT_TRUE(read) << read.why().text;
    size_t at = 0;
    for (element c : v["challenges"]) {
      if (std::string_view(c["token_type"]) != "0x0002") continue;
      ASSERT_LT(at, read->size());
      const token_demand& d = (*read)[at++];
      EXPECT_EQ(d.challenge.to_bytes(), hex_of(c, "token_challenge"));
      EXPECT_EQ(copy_of(d.key.value()), hex_of(c, "token_key"));
      EXPECT_EQ(d.max_age_s, 10u);
      auto again = read_demands(write_demand(d));
      ASSERT_TRUE(again) << again.why().text;
      EXPECT_EQ(*again, std::vector{d});
      ++ours;
    }
    EXPECT_EQ(at, read->size());
    ++seen;
  }
  EXPECT_EQ(seen, 3u);
  EXPECT_EQ(ours, 2u);
}

TEST_F(TokenAuthVectors, TheHeaderWithoutQuotes) {
  if (IsSkipped()) return;
  element v = root_["complicated_header"].at(0);
  auto read = read_demands(std::string_view(v["WWW-Authenticate"]));
  ASSERT_TRUE(read) << read.why().text;
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->front().challenge.to_bytes(), hex_of(v, "token-challenge-0"));
  EXPECT_EQ(copy_of(read->front().key.value()), hex_of(v, "token-key-0"));
}

TEST(TokenChallenge, HoldsNamesAtTheirLimits) {
  token_challenge c{.issuer = std::string(limits::token_issuer_bytes_max, 'i'),
                    .redemption_context = sha256({}),
                    .origin = std::string(limits::token_origin_bytes_max, 'o')};
  expect_codec(c);
  expect_codec({.issuer = "i"});
  // The same bytes with a name that is one longer, or empty.
  bytes wire = c.to_bytes();
  bytes longer = wire;
  longer[2] = std::byte{1}, longer[3] = std::byte{0};  // 256
  longer.insert(longer.begin() + 4, std::byte{'i'});
  expect_refused(token_challenge::from_bytes(longer), "an issuer's name of 256");
  bytes origin = wire;
  origin.push_back(std::byte{'o'});
  origin[4 + 255 + 33 + 1] = std::byte{1};  // 1025 = 0x0401
  expect_refused(token_challenge::from_bytes(origin), "an origin of 1025");
  expect_refused(token_challenge::from_bytes(from_hex("00020000000000")), "an issuer's name of 0");
  expect_refused(token_challenge::from_bytes(from_hex("000200016901ff0000")), "context of 1");
  expect_refused(token_challenge::from_bytes(from_hex("0001000169000000")), "type 0x0001");
}

TEST(TokenChallenge, AnyOtherByteIsAnotherDigest) {
  const bytes wire = a_challenge.to_bytes();
  for (size_t at = 0; at < wire.size(); ++at)
    if (auto other = token_challenge::from_bytes(flipped(wire, at))) {
      EXPECT_NE(other->digest(), a_challenge.digest()) << at;
    }
}

TEST(AuthHeader, ReadsSchemesParametersAndWhatStandsBetween) {
  auto read = read_auth("  ,Negotiate, Basic YWJj==  ,\tX a = b,c=\"d, \\\" e\" ,, Y q=\"\"");
  ASSERT_TRUE(read) << read.why().text;
  ASSERT_EQ(read->size(), 4u);
  EXPECT_EQ((*read)[1].name, "Basic");
  EXPECT_TRUE((*read)[1].params.empty());
  ASSERT_EQ((*read)[2].params.size(), 2u);
  EXPECT_EQ((*read)[2].params[0].value, "b");
  EXPECT_EQ((*read)[2].params[1].value, "d, \\\" e");
  EXPECT_EQ(**(*read)[2].find("C"), "d, \\\" e");
  EXPECT_FALSE(*(*read)[2].find("d"));
  EXPECT_EQ((*read)[3].params[0].value, "");
  EXPECT_TRUE(read_auth("")->empty());
}

TEST(AuthHeader, RefusesWhatIsNone) {
  for (const char* bad : {"a=b", "=", "X a=b c=d", "X a=b X", "X a=\"", "X a=\"b", "X a=\"\\",
                          "X a=\"\\\"", "X a=\"b\"c", "X Y a=b", "X \"a\"", "X a=b;", "X a==b",
                          "X a=b, c=", "X a=b=c", "(", "X a=\"\n\"", "X a=\x01", "X a=\"\\\n\""})
    EXPECT_FALSE(read_auth(bad)) << bad;
  EXPECT_FALSE(read_auth(std::string_view("X a=\"b\0\"", 8)));
}

TEST(AuthHeader, HasLimits) {
  auto many = [](size_t schemes, size_t params) {
    std::string text;
    for (size_t s = 0; s < schemes; ++s) {
      text += "S";
      for (size_t p = 0; p < params; ++p) text += (p ? ", p" : " p") + std::to_string(p) + "=v";
      text += ", ";
    }
    return text;
  };
  EXPECT_TRUE(read_auth(many(limits::auth_schemes_max, limits::auth_params_max)));
  EXPECT_FALSE(read_auth(many(limits::auth_schemes_max + 1, 1)));
  EXPECT_FALSE(read_auth(many(1, limits::auth_params_max + 1)));
  std::string full = "X a=\"" + std::string(limits::auth_header_bytes_max - 6, 'b') + "\"";
  EXPECT_TRUE(read_auth(full));
  EXPECT_FALSE(read_auth(full + " "));
}

TEST(TokenDemand, RefusesAChallengeThatIsBroken) {
  const token_demand d{
      .challenge = a_challenge, .key = key_of_test().published().spki(), .max_age_s = 30};
  const std::string good = write_demand(d);
  ASSERT_EQ(read_demands(good)->front(), d);
  const std::string key_only = good.substr(0, 12) + good.substr(good.find(" token-key"));
  expect_refused(read_demands(key_only), "not there");
  expect_refused(read_demands(good + ", max-age=1"), "twice");
  expect_refused(read_demands("PrivateToken challenge=AA"), "base64url");
  expect_refused(read_demands("PrivateToken challenge=AAI="), "do not fill");
  std::string short_key = good;
  short_key.erase(short_key.find("token-key=\"") + 11, 4);
  expect_refused(read_demands(short_key), "339 bytes");
  for (const char* age : {"x", "-1", "1.5", "1234567890123456789", "1 "})
    EXPECT_FALSE(
        read_demands(fmt::format("PrivateToken challenge=AAIAAWkAAAA=, max-age=\"{}\"", age)));
  EXPECT_EQ(read_demands("privatetoken Challenge=AAIAAWkAAAA=, Max-Age=7")->front().max_age_s, 7u);
  // Cut anywhere, it is an error or says less.
  for (size_t size = 0; size < good.size(); ++size) {
    auto cut = read_demands(std::string_view(good).substr(0, size));
    EXPECT_TRUE(!cut || cut->empty() || cut->front() != d) << size;
  }
}

TEST(Authorization, ComesBackWithAndWithoutQuotes) {
  private_token t;
  std::ranges::copy(random_bytes(32, 1), t.nonce.begin());
  std::ranges::copy(random_bytes(256, 2), t.signature.begin());
  secret_bytes written = write_authorization(t);
  const std::string text(written.text());
  EXPECT_TRUE(text.starts_with("PrivateToken token=\"AAI")) << text;
  EXPECT_EQ(*read_authorization(text), t);
  std::string bare = text;
  std::erase(bare, '"');
  EXPECT_EQ(*read_authorization(bare), t);
  EXPECT_EQ(*read_authorization(bare + ", extra=1"), t);
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(read_authorization(std::string_view(text).substr(0, size))) << size;
  for (size_t size = 0; size < bare.size(); ++size)
    EXPECT_FALSE(read_authorization(std::string_view(bare).substr(0, size))) << size;
  expect_refused(read_authorization(bare + ", " + bare), "only that");
  expect_refused(read_authorization(bare + ", token=x"), "twice");
  expect_refused(read_authorization("Bearer " + bare.substr(13)), "PrivateToken");
  expect_refused(read_authorization("PrivateToken x=y"), "without a token");
}

TEST(Base64Url, IsReadInOneFormOnly) {
  for (size_t size = 0; size < 70; ++size) {
    const bytes b = random_bytes(size, uint32_t(size));
    std::string text(base64url_chars(size), '\0');
    write_base64url(b, text);
    EXPECT_EQ(read_base64url(text), b);
  }
  EXPECT_EQ(read_base64url("-_8="), from_hex("fbff"));
  for (const char* bad : {"A", "AA", "AAA", "AB==", "AAB=", "AA=A",
                          "====", "A===", "AA==AA==", "+/8=", "AA A", "AAA\n"})
    EXPECT_FALSE(read_base64url(bad)) << bad;
}

}  // namespace
}  // namespace lethe
