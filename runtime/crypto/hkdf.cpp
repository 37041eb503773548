#include "runtime/crypto/hkdf.hpp"

#include <openssl/core_names.h>
#include <openssl/params.h>

#include "runtime/crypto/openssl.hpp"
#include "runtime/crypto/sha256.hpp"

namespace lethe {

namespace {

/// HMAC with SHA-256. Its contexts clear themselves when they are freed.
class hmac {
 public:
  explicit hmac(bytes_view key) {
    openssl::mac kind(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
    check(kind != nullptr);
    context_.reset(EVP_MAC_CTX_new(kind.get()));
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                 OSSL_PARAM_construct_end()};
    check(context_ &&
          EVP_MAC_init(context_.get(), openssl::uchars(key.data()), key.size(), params) == 1);
  }
  void add(bytes_view part) {
    check(EVP_MAC_update(context_.get(), openssl::uchars(part.data()), part.size()) == 1);
  }
  key_bytes end() {
    key_bytes out(hkdf_hash_bytes);
    size_t written = 0;
    check(EVP_MAC_final(context_.get(), openssl::uchars(out.data()), &written, out.size()) == 1 &&
          written == out.size());
    return out;
  }

 private:
  openssl::mac_context context_;
};

}  // namespace

key_bytes hkdf_extract(bytes_view salt, std::initializer_list<bytes_view> input) {
  constexpr std::array<std::byte, hkdf_hash_bytes> none{};  // OpenSSL takes no empty key
  hmac mac(salt.empty() ? bytes_view(none) : salt);
  for (bytes_view part : input) mac.add(part);
  return mac.end();
}

void hkdf_expand(bytes_view prk, std::initializer_list<bytes_view> info, std::span<std::byte> out) {
  check(out.size() <= 255 * hkdf_hash_bytes);
  key_bytes block;
  for (uint8_t number = 1; !out.empty(); ++number) {
    hmac mac(prk);
    mac.add(block.view());
    for (bytes_view part : info) mac.add(part);
    mac.add(std::as_bytes(std::span(&number, 1)));
    block = mac.end();
    size_t taken = std::min(out.size(), block.size());
    std::copy_n(block.data(), taken, out.begin());
    out = out.subspan(taken);
  }
}

key_bytes hkdf_expand(bytes_view prk, std::initializer_list<bytes_view> info, size_t bytes) {
  key_bytes out(bytes);
  hkdf_expand(prk, info, out.bytes());
  return out;
}

}  // namespace lethe
