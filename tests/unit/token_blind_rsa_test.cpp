#include "runtime/token/blind_rsa.hpp"

#include <openssl/core_names.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include "tests/unit/token_samples.hpp"

namespace lethe {
namespace {

using namespace test;

/// A key of these numbers, big-endian; without `d` its public half.
openssl::key key_from(bytes_view n, bytes_view d) {
  OSSL_PARAM_BLD* build = OSSL_PARAM_BLD_new();
  std::vector<openssl::number> numbers;
  auto push = [&](const char* name, bytes_view value) {
    numbers.emplace_back(BN_bin2bn(openssl::uchars(value.data()), int(value.size()), nullptr));
    EXPECT_EQ(OSSL_PARAM_BLD_push_BN(build, name, numbers.back().get()), 1);
  };
  push(OSSL_PKEY_PARAM_RSA_N, n);
  push(OSSL_PKEY_PARAM_RSA_E, from_hex("010001"));
  if (!d.empty()) push(OSSL_PKEY_PARAM_RSA_D, d);
  OSSL_PARAM* params = OSSL_PARAM_BLD_to_param(build);
  openssl::key_context context(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  EVP_PKEY* made = nullptr;
  EXPECT_EQ(EVP_PKEY_fromdata_init(context.get()), 1);
  EXPECT_EQ(EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_KEYPAIR, params), 1);
  OSSL_PARAM_free(params);
  OSSL_PARAM_BLD_free(build);
  return openssl::key(made);
}

bytes inverse_of(const rsa_public& key, bytes_view of) {
  auto context = openssl::new_number_context();
  bytes out(key.bytes());
  openssl::number_to(key.inverse(openssl::number_from(of).get(), context.get()).get(), out);
  return out;
}

/// A public key and its signer, and one message.
class BlindRsa : public ::testing::Test {
 protected:
  static const blind_signer& signer() {
    static const blind_signer made = blind_signer::make();
    return made;
  }
  const rsa_public& key() { return signer().published(); }
  bytes message_ = random_bytes(98, 5);
};

TEST(BlindRsaVectors, EveryVariantOfRfc9474) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  ASSERT_FALSE(parser.load((protocol_vectors() / "rsabssa-rfc9474.json").string()).get(root));
  size_t seen = 0;
  for (simdjson::dom::element v : root["vectors"]) {
    SCOPED_TRACE(std::string_view(v["name"]));
    const bytes message = hex_of(v, "input_msg"), salt = hex_of(v, "salt");
    auto signer = blind_signer::from(key_from(hex_of(v, "n"), hex_of(v, "d")));
    ASSERT_TRUE(signer) << signer.why().text;
    const rsa_public& key = signer->published();
    if (!v["encoded_msg"].error()) {
      EXPECT_EQ(copy_of(pss_encode(message, salt, key.bytes()).view()), hex_of(v, "encoded_msg"));
    }
    const bytes factor = inverse_of(key, hex_of(v, "inv"));
    auto blind = blinding::make(key, message, {.salt = salt, .factor = factor});
    ASSERT_TRUE(blind) << blind.why().text;
    EXPECT_EQ(copy_of(blind->blinded()), hex_of(v, "blinded_msg"));
    auto answer = signer->sign(blind->blinded());
    ASSERT_TRUE(answer) << answer.why().text;
    EXPECT_EQ(*answer, hex_of(v, "blind_sig"));
    auto signature = blind->finalize(key, message, *answer);
    ASSERT_TRUE(signature) << signature.why().text;
    EXPECT_EQ(*signature, hex_of(v, "sig"));
    EXPECT_TRUE(key.verifies(message, *signature, salt.size()));
    EXPECT_FALSE(key.verifies(message, *signature, 48 - salt.size())) << "another variant";
    ++seen;
  }
  EXPECT_EQ(seen, 5u);
}

TEST_F(BlindRsa, RefusesAKeyWhosePrivateHalfIsMissingOrAnothers) {
  const bytes_view n = key().modulus();
  expect_refused(blind_signer::from(key_from(n, {})), "does not verify");
  // OpenSSL itself signs with this one.
  expect_refused(blind_signer::from(key_from(n, random_bytes(255, 6))), "does not verify");
}

TEST_F(BlindRsa, SignsWhatItNeverSees) {
  auto one = blinding::make(key(), message_), other = blinding::make(key(), message_);
  EXPECT_NE(copy_of(one->blinded()), copy_of(other->blinded())) << "blinded anew each time";
  auto signature = one->finalize(key(), message_, *signer().sign(one->blinded()));
  ASSERT_TRUE(signature);
  EXPECT_TRUE(key().verifies(message_, *signature));
  EXPECT_FALSE(key().is_raw_signature(*signature, one->blinded()));
}

TEST_F(BlindRsa, SigningIsDeterministic) {
  auto blind = blinding::make(key(), message_);
  EXPECT_EQ(*signer().sign(blind->blinded()), *signer().sign(blind->blinded()));
}

TEST_F(BlindRsa, RefusesToSignNumbersThatAreNotBelowTheModulus) {
  bytes n = copy_of(key().modulus()), one_less = n;
  one_less.back() ^= std::byte{1};  // n is odd
  EXPECT_TRUE(signer().sign(one_less));
  expect_refused(signer().sign(n), "not below the modulus");
  bytes one_more = n;
  one_more.back() ^= std::byte{2};
  if (one_more > n) {
    expect_refused(signer().sign(one_more), "not below the modulus");
  }
  expect_refused(signer().sign(bytes(256, std::byte{0xff})), "not below the modulus");
  for (size_t size : {0u, 1u, 255u, 257u, 512u})
    expect_refused(signer().sign(bytes(size)), "not below the modulus");
}

TEST_F(BlindRsa, RefusesAWrongAnswerAndTakesTheRightOneAfterIt) {
  auto blind = blinding::make(key(), message_);
  const bytes right = *signer().sign(blind->blinded());
  for (size_t at = 0; at < right.size(); at += 17)
    EXPECT_FALSE(blind->finalize(key(), message_, flipped(right, at)));
  EXPECT_FALSE(blind->finalize(key(), message_, bytes(right.begin(), right.end() - 1)));
  EXPECT_FALSE(blind->finalize(key(), message_, copy_of(key().modulus())));
  EXPECT_FALSE(blind->finalize(key(), flipped(message_, 3), right)) << "another message";
  auto other = blinding::make(key(), message_);
  EXPECT_FALSE(other->finalize(key(), message_, right)) << "another blinding's answer";
  EXPECT_TRUE(blind->finalize(key(), message_, right));
}

TEST_F(BlindRsa, VerifiesOnlyTheSignatureOfThatMessageAndKey) {
  auto blind = blinding::make(key(), message_);
  const bytes good = *blind->finalize(key(), message_, *signer().sign(blind->blinded()));
  EXPECT_TRUE(key().verifies(message_, good));
  for (size_t at = 0; at < message_.size(); ++at)
    EXPECT_FALSE(key().verifies(flipped(message_, at), good)) << at;
  for (size_t at = 0; at < good.size(); ++at)
    EXPECT_FALSE(key().verifies(message_, flipped(good, at))) << at;
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(key().verifies(message_, bytes_view(good).first(size)));
  EXPECT_FALSE(blind_signer::make().published().verifies(message_, good));
}

TEST_F(BlindRsa, RefusesChoicesThatBlindNothing) {
  const bytes salt(48), zero(256);
  expect_refused(blinding::make(key(), message_, {.salt = salt, .factor = zero}), "choose again");
  expect_refused(blinding::make(key(), message_, {.salt = salt, .factor = key().modulus()}),
                 "not below the modulus");
  expect_refused(blinding::make(key(), message_, {.salt = salt, .factor = bytes(255)}),
                 "not below the modulus");
  expect_refused(blinding::make(key(), message_, {.salt = bytes(49), .factor = bytes(256)}),
                 "a salt of 49");
}

TEST_F(BlindRsa, RefusesModuliThatAreNone) {
  bytes n = copy_of(key().modulus());
  EXPECT_TRUE(rsa_public::from(n));
  expect_refused(rsa_public::from(flipped(n, 255)), "even");
  expect_refused(rsa_public::from(flipped(n, 0, 0x80)), "does not fill");
  expect_refused(rsa_public::from(bytes(255, std::byte{0xff})), "255 bytes");
  expect_refused(rsa_public::from(bytes(513, std::byte{0xff})), "513 bytes");
  EXPECT_TRUE(rsa_public::from(bytes(512, std::byte{0xff})));
}

TEST_F(BlindRsa, RefusesKeysOfOtherKindsAndExponents) {
  expect_refused(blind_signer::from(openssl::key(EVP_EC_gen("P-256"))), "not one of RSA");
  openssl::key_context context(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  openssl::number three(BN_new());
  EVP_PKEY* made = nullptr;
  ASSERT_TRUE(BN_set_word(three.get(), 3) && EVP_PKEY_keygen_init(context.get()) == 1 &&
              EVP_PKEY_CTX_set1_rsa_keygen_pubexp(context.get(), three.get()) == 1 &&
              EVP_PKEY_generate(context.get(), &made) == 1);
  expect_refused(blind_signer::from(openssl::key(made)), "exponent");
}

}  // namespace
}  // namespace lethe
