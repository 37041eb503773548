#pragma once

#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/crypto/key_bytes.hpp"
#include "runtime/crypto/openssl.hpp"

namespace lethe {

/// A key pair of DHKEM(X25519, HKDF-SHA256), RFC 9180 sections 4.1 and 7.1. The private part lies
/// in one place, which OpenSSL clears.
class hpke_key {
 public:
  static constexpr uint16_t kem_x25519 = 0x0020;

  static result<hpke_key> make(uint16_t kem);
  /// DeriveKeyPair: the same key for the same `ikm`, which has at least the private key's length.
  static result<hpke_key> derive(uint16_t kem, bytes_view ikm);
  static result<hpke_key> from_private(uint16_t kem, bytes_view private_key);

  uint16_t kem() const noexcept { return kem_; }
  bytes_view public_key() const noexcept { return public_; }

  /// The key encapsulation, from both ends. `enc` is the sender's ephemeral public key.
  result<key_bytes> shared_with_receiver(bytes_view receiver_public) const;
  result<key_bytes> shared_with_sender(bytes_view enc) const;

 private:
  hpke_key() = default;
  static result<hpke_key> from(openssl::key key);
  result<key_bytes> agree(bytes_view other, bytes_view enc, bytes_view receiver) const;

  uint16_t kem_ = kem_x25519;
  openssl::key key_;
  std::vector<std::byte> public_;
};

/// Npk and Nenc; 0 for a KEM that is not known.
constexpr size_t kem_public_bytes(uint16_t kem) { return kem == hpke_key::kem_x25519 ? 32 : 0; }

}  // namespace lethe
