// An issuer's private key is gone when it is dropped, also where OpenSSL read and wrote it. The
// decoder frees copies as they are, so this program links lethe_zero_on_free, as those that read
// keys do.

#include <openssl/core_names.h>
#include <openssl/pem.h>

#include <memory>

#include "runtime/base/zero_on_free.hpp"
#include "tests/unit/memory_search.hpp"
#include "tests/unit/token_samples.hpp"

namespace lethe {
namespace {

using namespace test;

/// The private numbers: as they are in memory, and as they are written.
[[gnu::noinline]] std::vector<needle> secrets_of(std::string_view pem) {
  openssl::bio in(BIO_new_mem_buf(pem.data(), int(pem.size())));
  openssl::key key(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
  std::vector<needle> all;
  for (const char* name : {OSSL_PKEY_PARAM_RSA_D, OSSL_PKEY_PARAM_RSA_FACTOR1,
                           OSSL_PKEY_PARAM_RSA_FACTOR2, OSSL_PKEY_PARAM_RSA_EXPONENT1,
                           OSSL_PKEY_PARAM_RSA_EXPONENT2, OSSL_PKEY_PARAM_RSA_COEFFICIENT1}) {
    BIGNUM* value = nullptr;
    EXPECT_EQ(EVP_PKEY_get_bn_param(key.get(), name, &value), 1);
    openssl::number owned(value);
    secret_bytes out{size_t(BN_num_bytes(value))};
    openssl::number_to(value, out.bytes());
    all.push_back(needle(out.view().subspan(16, 64)));
    all.push_back(needle::of_number(out.view().subspan(16, 64)));
  }
  all.push_back(needle(as_bytes(pem.substr(200, 64))));
  all.push_back(needle(as_bytes(pem.substr(1000, 64))));
  return all;
}

size_t count(const std::vector<needle>& all) {
  size_t found = 0;
  for (const auto& n : all) found += count_everywhere(n);
  return found;
}

class IssuerKeyForgets : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(LETHE_SANITIZED)
    GTEST_SKIP() << "the sanitizers' shadow memory is too large to search";
#endif
    ASSERT_TRUE(zeroes_what_it_frees());
  }
};

[[gnu::noinline]] std::vector<needle> use_and_drop(std::unique_ptr<issuer_key> key) {
  secret_bytes pem = key->pem();
  std::vector<needle> secrets = secrets_of(pem.text());
  EXPECT_GE(count(secrets), 6u + 2u) << "the negative control: the key's numbers, and its text";
  pem.clear();
  const size_t living = count(secrets);
  EXPECT_GE(living, 6u) << "the key's numbers";
  EXPECT_TRUE(key->sign(bytes(256, std::byte{1})));
  auto moved = std::make_unique<issuer_key>(std::move(*key));
  key.reset();
  EXPECT_TRUE(moved->sign(bytes(256, std::byte{2})));
  EXPECT_GE(count(secrets), 6u);
  return secrets;
}

TEST_F(IssuerKeyForgets, OneThatWasMade) {
  auto secrets = use_and_drop(std::make_unique<issuer_key>(issuer_key::make()));
  EXPECT_EQ(count(secrets), 0u);
}

TEST_F(IssuerKeyForgets, OneThatWasRead) {
  auto key = [] {
    auto made = issuer_key::make();
    return std::make_unique<issuer_key>(*issuer_key::from_pem(made.pem().text()));
  }();
  auto secrets = use_and_drop(std::move(key));
  EXPECT_EQ(count(secrets), 0u);
}

TEST_F(IssuerKeyForgets, OneThatAnIssuerRetired) {
  token_issuer issuer;
  std::vector<needle> secrets;
  {
    auto key = issuer_key::make();
    secrets = secrets_of(key.pem().text());
    ASSERT_TRUE(issuer.add(std::move(key), 1));
  }
  for (uint64_t begins : {2, 3})
    while (!issuer.add(issuer_key::make(), begins)) {
    }
  EXPECT_GE(count(secrets), 6u);
  issuer.retire(3);
  EXPECT_EQ(count(secrets), 0u);
}

}  // namespace
}  // namespace lethe
