#include "runtime/crypto/dhkem.hpp"

#include <openssl/err.h>

#include "runtime/crypto/labeled_hkdf.hpp"

namespace lethe {

namespace {

constexpr std::array kem_suite_id{std::byte{'K'}, std::byte{'E'}, std::byte{'M'}, std::byte{0x00},
                                  std::byte{0x20}};
constexpr size_t x25519_bytes = 32;

result<void> expect_known(uint16_t kem) {
  if (kem == hpke_key::kem_x25519) return {};
  return fail("hpke: KEM {:#06x} is not known; this release has 0x0020 (X25519)", kem);
}

}  // namespace

result<hpke_key> hpke_key::from(openssl::key key) {
  check(key != nullptr);
  hpke_key made;
  made.key_ = std::move(key);
  made.public_.resize(x25519_bytes);
  size_t size = x25519_bytes;
  check(EVP_PKEY_get_raw_public_key(made.key_.get(), openssl::uchars(made.public_.data()), &size) ==
            1 &&
        size == x25519_bytes);
  return made;
}

result<hpke_key> hpke_key::make(uint16_t kem) {
  if (auto known = expect_known(kem); !known) return known.why();
  return from(openssl::key(EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519")));
}

result<hpke_key> hpke_key::derive(uint16_t kem, bytes_view ikm) {
  if (auto known = expect_known(kem); !known) return known.why();
  if (ikm.size() < x25519_bytes)
    return fail("hpke: {} bytes to derive a key from; {} are needed", ikm.size(), x25519_bytes);
  labeled_hkdf hkdf{kem_suite_id};
  key_bytes prk = hkdf.extract({}, "dkp_prk", ikm);
  return from_private(kem, hkdf.expand(prk.view(), "sk", {}, {}, x25519_bytes).view());
}

result<hpke_key> hpke_key::from_private(uint16_t kem, bytes_view private_key) {
  if (auto known = expect_known(kem); !known) return known.why();
  if (private_key.size() != x25519_bytes)
    return fail("hpke: a private key of {} bytes; X25519 has {}", private_key.size(), x25519_bytes);
  return from(openssl::key(EVP_PKEY_new_raw_private_key(
      EVP_PKEY_X25519, nullptr, openssl::uchars(private_key.data()), private_key.size())));
}

result<key_bytes> hpke_key::agree(bytes_view other, bytes_view enc, bytes_view receiver) const {
  if (other.size() != x25519_bytes)
    return fail("hpke: a public key of {} bytes; X25519 has {}", other.size(), x25519_bytes);
  openssl::key peer(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr,
                                                openssl::uchars(other.data()), other.size()));
  openssl::key_context context(EVP_PKEY_CTX_new(key_.get(), nullptr));
  check(peer && context && EVP_PKEY_derive_init(context.get()) == 1);
  key_bytes dh(x25519_bytes);
  size_t size = dh.size();
  // OpenSSL refuses a result of all zeroes, as we do below if it ever stops.
  bool good = EVP_PKEY_derive_set_peer(context.get(), peer.get()) == 1 &&
              EVP_PKEY_derive(context.get(), openssl::uchars(dh.data()), &size) == 1;
  ERR_clear_error();
  std::byte any{};
  for (std::byte b : dh.view()) any |= b;
  if (!good || size != x25519_bytes || any == std::byte{})
    return fail("hpke: the peer's public key is of small order; it must make another");
  labeled_hkdf hkdf{kem_suite_id};
  key_bytes prk = hkdf.extract({}, "eae_prk", dh.view());
  return hkdf.expand(prk.view(), "shared_secret", enc, receiver, hkdf_hash_bytes);
}

result<key_bytes> hpke_key::shared_with_receiver(bytes_view receiver_public) const {
  return agree(receiver_public, public_, receiver_public);
}

result<key_bytes> hpke_key::shared_with_sender(bytes_view enc) const {
  return agree(enc, enc, public_);
}

}  // namespace lethe
