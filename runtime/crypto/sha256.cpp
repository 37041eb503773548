#include "runtime/crypto/sha256.hpp"

#include "runtime/base/check.hpp"
#include "runtime/crypto/openssl.hpp"

namespace lethe {

hash32 sha256(std::initializer_list<bytes_view> parts) {
  openssl::digest_context context(EVP_MD_CTX_new());
  check(context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  for (bytes_view part : parts)
    check(EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1);
  hash32 hash;
  check(EVP_DigestFinal_ex(context.get(), openssl::uchars(hash.data()), nullptr) == 1);
  return hash;
}

}  // namespace lethe
