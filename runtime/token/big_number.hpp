#pragma once

#include <openssl/bn.h>

#include "runtime/base/bytes.hpp"
#include "runtime/base/check.hpp"
#include "runtime/crypto/openssl.hpp"

/// OpenSSL's numbers with owners. All are wiped when they die, and so is what a context lends.
namespace lethe::openssl {

using number = std::unique_ptr<BIGNUM, releaser<BN_clear_free>>;
using number_context = std::unique_ptr<BN_CTX, releaser<BN_CTX_free>>;
using montgomery = std::unique_ptr<BN_MONT_CTX, releaser<BN_MONT_CTX_free>>;

inline number_context new_number_context() {
  number_context made(BN_CTX_new());
  check(made != nullptr);
  return made;
}

/// Exponentiation with it and inversion of it take as long for every value.
inline number new_secret_number() {
  number made(BN_new());
  check(made != nullptr);
  BN_set_flags(made.get(), BN_FLG_CONSTTIME);
  return made;
}

inline number number_from(bytes_view big_endian) {
  number made = new_secret_number();
  check(BN_bin2bn(uchars(big_endian.data()), int(big_endian.size()), made.get()) != nullptr);
  return made;
}

/// Big-endian, as many bytes as `to` has; the number fits.
inline void number_to(const BIGNUM* value, std::span<std::byte> to) {
  check(BN_bn2binpad(value, uchars(to.data()), int(to.size())) == int(to.size()));
}

}  // namespace lethe::openssl
