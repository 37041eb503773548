// After a token is bought or given up, nothing that links it to its request is in the process's
// memory. This program frees memory as it is: what is gone was wiped by its owner.

#include <memory>

#include "runtime/crypto/random.hpp"
#include "tests/unit/memory_search.hpp"
#include "tests/unit/token_samples.hpp"

namespace lethe {
namespace {

using namespace test;

struct named_needle {
  std::string_view name;
  needle value;
};

const hash32 digest = a_challenge.digest();

secret_bytes drawn(size_t size) {
  secret_bytes out(size);
  fill_random(out.bytes());
  return out;
}

/// The middle of a number, both as bytes and as OpenSSL keeps it.
[[gnu::noinline]] void add_number(std::string_view name, const BIGNUM* value,
                                  std::vector<named_needle>& to) {
  secret_bytes out(256);
  openssl::number_to(value, out.bytes());
  to.push_back({name, needle(out.view().subspan(64, 64))});
  to.push_back({name, needle::of_number(out.view().subspan(64, 64))});
}

/// Every secret of a token that is asked for, worked out once more.
[[gnu::noinline]] std::vector<named_needle> secrets_of(const rsa_public& key, bytes_view message,
                                                       bytes_view salt, bytes_view factor) {
  std::vector<named_needle> all;
  auto context = openssl::new_number_context();
  BN_CTX* c = context.get();
  secret_bytes encoded = pss_encode(message, salt, key.bytes());
  auto m = openssl::number_from(encoded.view()), r = openssl::number_from(factor);
  all.push_back({"nonce", needle(message.subspan(2, 32))});
  all.push_back({"salt", needle(salt)});
  add_number("inverse", key.inverse(r.get(), c).get(), all);
  add_number("factor", r.get(), all);
  add_number("encoded", m.get(), all);
  add_number("factor's power", key.power(r.get(), c).get(), all);
  add_number("message by factor", key.product(m.get(), r.get(), c).get(), all);
  return all;
}

struct asked {
  std::unique_ptr<pending_token> pending;
  std::vector<named_needle> secrets;
};

[[gnu::noinline]] asked ask(const token_key& key) {
  asked a;
  secret_bytes salt = drawn(48), factor = drawn(256), nonce = drawn(32);
  factor.bytes()[0] = {};  // below the modulus
  secret_bytes message(98);
  auto at = std::ranges::copy(nonce.view(), message.bytes().begin() + 2).out;
  at = std::ranges::copy(digest, at).out;
  std::ranges::copy(key.id(), at);
  message.bytes()[1] = std::byte{2};
  hash32 first;
  std::ranges::copy(nonce.view(), first.begin());
  a.pending = std::make_unique<pending_token>(
      *pending_token::make(key, digest, first, {salt.view(), factor.view()}));
  wipe(first.data(), first.size());
  a.secrets = secrets_of(key.rsa(), message.view(), salt.view(), factor.view());
  return a;
}

/// Of those by that name, or of all.
size_t count(const std::vector<named_needle>& secrets, std::string_view name = {}) {
  size_t found = 0;
  for (const auto& n : secrets)
    if (name.empty() || n.name == name) found += count_everywhere(n.value);
  return found;
}

class TokenForgets : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(LETHE_SANITIZED)
    GTEST_SKIP() << "the sanitizers' shadow memory is too large to search";
#endif
  }
};

TEST_F(TokenForgets, ATokenThatIsGivenUp) {
  const token_key& key = key_of_test().published();
  asked a = ask(key);
  // While it waits, the same search finds what it still needs, and no more.
  EXPECT_EQ(count(a.secrets, "nonce"), 1u);
  EXPECT_EQ(count(a.secrets, "inverse"), 1u);
  EXPECT_EQ(count(a.secrets), 2u);
  auto moved = std::make_unique<pending_token>(std::move(*a.pending));
  a.pending.reset();
  EXPECT_EQ(count(a.secrets), 2u) << "it moved and left nothing";
  moved.reset();
  EXPECT_EQ(count(a.secrets), 0u);
}

TEST_F(TokenForgets, WhatLinksATokenThatIsBoughtToItsRequest) {
  asked a = ask(key_of_test().published());
  auto token = a.pending->finish(key_of_test().published(),
                                 *key_of_test().sign(a.pending->request().blinded));
  ASSERT_TRUE(token);
  EXPECT_EQ(count(a.secrets, "inverse"), 1u);
  EXPECT_GE(count(a.secrets, "nonce"), 2u) << "the token's and the state's";
  a.pending.reset();
  for (const auto& n : a.secrets) {
    // The token goes on, and the salt follows from it.
    if (n.name == "nonce" || n.name == "salt") continue;
    EXPECT_EQ(count_everywhere(n.value), 0u) << n.name;
  }
}

TEST_F(TokenForgets, ATokenWhoseAnswerIsWrong) {
  asked a = ask(key_of_test().published());
  EXPECT_FALSE(a.pending->finish(key_of_test().published(), bytes(256, std::byte{3})));
  EXPECT_EQ(count(a.secrets), 2u) << "for another answer";
  a.pending.reset();
  EXPECT_EQ(count(a.secrets), 0u);
}

TEST_F(TokenForgets, OnlyWhatItsOwnerWipes) {  // the negative control
  secret_bytes secret = drawn(64);
  const needle n(secret.view());
  auto careless = std::make_unique<std::byte[]>(512);
  std::ranges::copy(secret.view(), careless.get() + 256);
  EXPECT_EQ(count_everywhere(n), 2u);
  secret.clear();
  EXPECT_EQ(count_everywhere(n), 1u);
  careless.reset();
  EXPECT_EQ(count_everywhere(n), 1u) << "freed, and still there";
}

}  // namespace
}  // namespace lethe
