#pragma once

#include <array>

#include "runtime/token/token_challenge.hpp"
#include "runtime/token/token_client.hpp"
#include "runtime/token/token_issuer.hpp"
#include "tests/unit/crypto_samples.hpp"

namespace lethe::test {

inline const token_challenge a_challenge{.issuer = "issuer.example", .origin = "gateway.example"};

/// Keys of a few programs' tests: made once, with different last bytes of their ids.
inline const issuer_key& key_of_test(size_t i = 0) {
  static const std::vector<issuer_key> keys = [] {
    std::vector<issuer_key> made;
    while (made.size() < 3) {
      issuer_key key = issuer_key::make();
      bool known = false;
      for (const auto& k : made) known |= k.published().short_id() == key.published().short_id();
      if (!known) made.push_back(std::move(key));
    }
    return made;
  }();
  return keys.at(i);
}

inline issuer_key copy_of_key(const issuer_key& key) {
  return *issuer_key::from_pem(key.pem().text());
}

/// Keys 0, 1 and 2 begin at 100, 200 and 300.
inline token_issuer issuer_of_test() {
  token_issuer made;
  for (size_t i : {1, 0, 2}) EXPECT_TRUE(made.add(copy_of_key(key_of_test(i)), 100 * (i + 1)));
  return made;
}

inline private_token token_under(const issuer_key& key,
                                 const hash32& digest = a_challenge.digest()) {
  auto pending = pending_token::make(key.published(), digest);
  return *pending->finish(key.published(), *key.sign(pending->request().blinded));
}

template <class T>
void expect_refused(const result<T>& got, std::string_view why) {
  ASSERT_FALSE(got) << "wanted: " << why;
  EXPECT_NE(got.why().text.find(why), std::string::npos) << got.why().text;
}

}  // namespace lethe::test
