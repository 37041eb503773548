#include "runtime/token/token_key.hpp"

#include <openssl/core_names.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "tests/unit/token_samples.hpp"

namespace lethe {
namespace {

using namespace test;

TEST(TokenKey, IsReadInItsOneFormOnly) {
  const token_key& key = key_of_test().published();
  const bytes spki = copy_of(key.spki());
  auto read = token_key::from_spki(spki);
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(read->id(), key.id());
  EXPECT_EQ(read->id(), sha256({spki}));
  EXPECT_EQ(read->short_id(), uint8_t(read->id()[31]));
  for (size_t size = 0; size < spki.size(); ++size)
    EXPECT_FALSE(token_key::from_spki(bytes_view(spki).first(size))) << size;
  EXPECT_FALSE(token_key::from_spki(joined({spki, bytes(1)})));
  constexpr size_t modulus_at = 81;
  for (size_t at = 0; at < spki.size(); ++at)
    for (uint8_t bit : {0x01, 0x80}) {
      const bool in_modulus = at >= modulus_at && at < modulus_at + 256;
      const bool still_one = in_modulus && !(at == modulus_at && bit == 0x80) &&
                             !(at == modulus_at + 255 && bit == 0x01);
      auto other = token_key::from_spki(flipped(spki, at, bit));
      EXPECT_EQ(bool(other), still_one) << at;
      if (other) {
        EXPECT_NE(other->id(), key.id());
      }
    }
}

TEST(TokenKey, IsAPssKeyOfThatKindToOpenSslToo) {
  const token_spki& spki = key_of_test().published().spki();
  const unsigned char* at = openssl::uchars(spki.data());
  openssl::key key(d2i_PUBKEY(nullptr, &at, long(spki.size())));
  ASSERT_TRUE(key);
  EXPECT_EQ(at, openssl::uchars(spki.data()) + spki.size());
  EXPECT_EQ(EVP_PKEY_is_a(key.get(), "RSA-PSS"), 1);
  EXPECT_EQ(EVP_PKEY_get_bits(key.get()), 2048);
  // It says itself how its signatures are made.
  const private_token t = token_under(key_of_test());
  const auto bytes = t.to_bytes();
  openssl::digest_context context(EVP_MD_CTX_new());
  ASSERT_EQ(EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()), 1);
  EXPECT_EQ(EVP_DigestVerify(context.get(), openssl::uchars(t.signature.data()), 256,
                             openssl::uchars(bytes.data()), 98),
            1);
}

TEST(TokenKey, ThePublishedKeysAndTheirIds) {
  LETHE_NEEDS_PROTOCOL_VECTORS();
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  ASSERT_FALSE(
      parser.load((protocol_vectors() / "privacypass-type2-rfc9578.json").string()).get(root));
  size_t seen = 0;
  for (simdjson::dom::element v : root["vectors"]) {
    auto key = issuer_key::from_pem(std::string_view(v["skS_pem"]));
    ASSERT_TRUE(key) << key.why().text;
    EXPECT_EQ(copy_of(key->published().spki()), hex_of(v, "pkS"));
    EXPECT_EQ(copy_of(key->published().id()),
              copy_of(bytes_view(hex_of(v, "token")).subspan(66, 32)));
    ++seen;
  }
  EXPECT_EQ(seen, 10u);
}

TEST(IssuerKey, ComesBackFromItsPem) {
  const issuer_key& key = key_of_test();
  secret_bytes pem = key.pem();
  EXPECT_TRUE(pem.text().starts_with("-----BEGIN PRIVATE KEY-----\n"));
  auto read = issuer_key::from_pem(pem.text());
  ASSERT_TRUE(read) << read.why().text;
  EXPECT_EQ(read->published().id(), key.published().id());
  const bytes number(256, std::byte{1});
  EXPECT_EQ(*read->sign(number), *key.sign(number));
}

TEST(IssuerKey, RefusesWhatIsNoKeyOfItsKind) {
  const std::string pem(key_of_test().pem().text());
  for (size_t size = 0; size + 2 < pem.size(); size += 13)
    EXPECT_FALSE(issuer_key::from_pem(std::string_view(pem).substr(0, size))) << size;
  expect_refused(issuer_key::from_pem(""), "not a private key");
  openssl::bio out(BIO_new(BIO_s_mem()));
  openssl::key large(EVP_RSA_gen(3072));
  ASSERT_EQ(PEM_write_bio_PrivateKey(out.get(), large.get(), nullptr, nullptr, 0, nullptr, nullptr),
            1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  expect_refused(issuer_key::from_pem({text, size_t(size)}), "RSA-2048 has 256");
}

TEST(IssuerKey, RefusesAProtectedKeyWithoutAsking) {
  openssl::bio out(BIO_new(BIO_s_mem()));
  openssl::key key(EVP_EC_gen("P-256"));
  char phrase[] = "phrase";
  ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(out.get(), key.get(), EVP_aes_128_cbc(), phrase, 6,
                                          nullptr, nullptr),
            1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  expect_refused(issuer_key::from_pem({text, size_t(size)}), "without passphrase");
}

}  // namespace
}  // namespace lethe
