#include "runtime/crypto/ed25519.hpp"

#include <openssl/err.h>

#include "runtime/base/check.hpp"

namespace lethe {

signing_key::signing_key(openssl::key key) : key_(std::move(key)) {
  size_t size = public_.size();
  check(key_ &&
        EVP_PKEY_get_raw_public_key(key_.get(), openssl::uchars(public_.data()), &size) == 1 &&
        size == public_.size());
}

signing_key signing_key::make() {
  return signing_key(openssl::key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")));
}

result<signing_key> signing_key::from_private(bytes_view private_key) {
  if (private_key.size() != 32)
    return fail("signing key: {} bytes; Ed25519 has 32", private_key.size());
  return signing_key(openssl::key(EVP_PKEY_new_raw_private_key(
      EVP_PKEY_ED25519, nullptr, openssl::uchars(private_key.data()), private_key.size())));
}

signature signing_key::sign(bytes_view message) const {
  openssl::digest_context context(EVP_MD_CTX_new());
  signature made;
  size_t size = made.size();
  check(context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
        EVP_DigestSign(context.get(), openssl::uchars(made.data()), &size,
                       openssl::uchars(message.data()), message.size()) == 1 &&
        size == made.size());
  return made;
}

bool verify_signature(const hash32& public_key, bytes_view message, bytes_view signature) {
  openssl::key key(EVP_PKEY_new_raw_public_key(
      EVP_PKEY_ED25519, nullptr, openssl::uchars(public_key.data()), public_key.size()));
  openssl::digest_context context(EVP_MD_CTX_new());
  bool good = key && context &&
              EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
              EVP_DigestVerify(context.get(), openssl::uchars(signature.data()), signature.size(),
                               openssl::uchars(message.data()), message.size()) == 1;
  if (!good) ERR_clear_error();
  return good;
}

}  // namespace lethe
