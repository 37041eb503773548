#pragma once

#include "runtime/client/wallet.hpp"
#include "tests/unit/log_samples.hpp"
#include "tests/unit/token_samples.hpp"

namespace lethe::test {

inline const hash32 digest = a_challenge.digest();

/// Of the right form; whether it was signed is no wallet's question.
inline private_token unsigned_token(uint32_t seed,
                                    const hash32& key = key_of_test().published().id()) {
  private_token t{.challenge_digest = digest, .key_id = key};
  std::ranges::copy(random_bytes(32, seed), t.nonce.begin());
  return t;
}
inline std::vector<private_token> many(uint32_t count, uint32_t from = 0) {
  std::vector<private_token> made;
  for (uint32_t i = 0; i < count; ++i) made.push_back(unsigned_token(from + i));
  return made;
}

}  // namespace lethe::test
