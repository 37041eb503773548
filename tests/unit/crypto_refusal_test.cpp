#include "runtime/crypto/refusal.hpp"

#include "runtime/crypto/receipt.hpp"
#include "tests/unit/crypto_samples.hpp"

namespace lethe {
namespace {

using namespace test;

const hash32 binding = sha256({as_bytes("request")});

TEST(Refusal, IsReadAsItWasSigned) {
  auto key = node_key::make();
  for (uint8_t reason = 1; reason <= refusal_reasons; ++reason) {
    const node_refusal r{binding, 9, refusal_reason(reason)};
    auto read = verify_refusal(sign_refusal(*key, r), key->published().sigpk, binding);
    ASSERT_TRUE(read) << read.why().text;
    EXPECT_EQ(*read, r);
  }
}

TEST(Refusal, AnotherByteKeyOrRequestIsRefused) {
  auto key = node_key::make(), other = node_key::make();
  const auto made = sign_refusal(*key, {binding, 9, refusal_reason::full});
  const bytes right = copy_of(made);
  for (size_t at = 0; at < right.size(); ++at) {
    EXPECT_FALSE(verify_refusal(flipped(right, at), key->published().sigpk, binding)) << at;
    EXPECT_FALSE(verify_refusal(bytes_view(right).first(at), key->published().sigpk, binding));
  }
  EXPECT_FALSE(verify_refusal(joined({right, bytes(1)}), key->published().sigpk, binding));
  EXPECT_FALSE(verify_refusal(right, other->published().sigpk, binding));
  EXPECT_FALSE(verify_refusal(right, key->published().sigpk, sha256({as_bytes("another")})));
  for (uint8_t reason : {0, refusal_reasons + 1}) {
    const auto odd = sign_refusal(*key, {binding, 9, refusal_reason(reason)});
    EXPECT_FALSE(verify_refusal(odd, key->published().sigpk, binding));
  }
}

}  // namespace
}  // namespace lethe
