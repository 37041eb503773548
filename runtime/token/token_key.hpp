#pragma once

#include "runtime/crypto/sha256.hpp"
#include "runtime/token/blind_rsa.hpp"
#include "runtime/token/token_names.hpp"

namespace lethe {

inline constexpr size_t token_modulus_bytes = 256;
inline constexpr size_t token_spki_bytes = 342;

using token_signature = std::array<std::byte, token_modulus_bytes>;
using token_spki = std::array<std::byte, token_spki_bytes>;

/// The one form that a key of token type 2 has: a SubjectPublicKeyInfo of id-RSASSA-PSS with
/// explicit SHA-384, MGF1-SHA384 and salt 48, RSA-2048, e = 65537. Refuses every other byte.
result<token_spki> read_spki(bytes_view bytes);

/// What an issuer publishes.
class token_key {
 public:
  static result<token_key> from_spki(bytes_view bytes);
  static result<token_key> from_modulus(bytes_view modulus);

  const token_spki& spki() const noexcept { return spki_; }
  /// token_key_id: SHA-256(SPKI).
  const hash32& id() const noexcept { return id_; }
  /// What a request names the key by: the id's last byte.
  uint8_t short_id() const noexcept { return uint8_t(id_.back()); }
  const rsa_public& rsa() const noexcept { return rsa_; }

 private:
  token_key(const token_spki& spki, rsa_public rsa)
      : spki_(spki), id_(sha256({spki})), rsa_(std::move(rsa)) {}
  token_spki spki_;
  hash32 id_;
  rsa_public rsa_;
};

/// An issuer's private key, cleared with the object.
class issuer_key {
 public:
  static issuer_key make();
  /// PKCS #8 without passphrase. OpenSSL's decoder leaves copies to the heap: a program that reads
  /// keys links lethe_zero_on_free.
  static result<issuer_key> from_pem(std::string_view pem);
  /// For a file that only its owner reads.
  secret_bytes pem() const;

  const token_key& published() const noexcept { return public_; }
  /// Deterministic; refuses numbers that are not below the modulus.
  result<token_signature> sign(bytes_view blinded) const;

 private:
  issuer_key(blind_signer signer, token_key published)
      : signer_(std::move(signer)), public_(std::move(published)) {}
  static result<issuer_key> from(blind_signer signer);
  blind_signer signer_;
  token_key public_;
};

}  // namespace lethe
