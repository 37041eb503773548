#pragma once

#include "runtime/token/rsa_public.hpp"

/// RSABSSA-SHA384-PSS-Deterministic (RFC 9474): a signature over a message that the signer never
/// sees. The message is signed as it is, so it must hold enough that nobody can guess.
namespace lethe {

/// What a client chooses at random; published vectors prescribe it. Neither is used twice.
struct blind_choices {
  bytes_view salt;
  bytes_view factor;  // r, big-endian
};

/// A client's half of one signature: what blinds it is wiped with the object.
class blinding {
 public:
  static result<blinding> make(const rsa_public& key, bytes_view message);
  static result<blinding> make(const rsa_public& key, bytes_view message,
                               const blind_choices& choices);

  /// What the signer gets: a number that says nothing of the message.
  bytes_view blinded() const noexcept { return blinded_; }
  /// The signature over the same message as before, verified. An answer that is wrong leaves this
  /// as it was, for another one.
  result<std::vector<std::byte>> finalize(const rsa_public& key, bytes_view message,
                                          bytes_view blind_signature) const;

 private:
  blinding() = default;
  static result<blinding> make(const rsa_public& key, bytes_view message, bytes_view salt,
                               openssl::number factor);
  std::vector<std::byte> blinded_;
  openssl::number inverse_;  // of r
  size_t salt_bytes_ = pss_salt_bytes;
};

/// The private key. Signing the same number gives the same signature.
class blind_signer {
 public:
  static blind_signer make();  // RSA-2048
  /// An RSA key with its private half; refused if the halves do not fit.
  static result<blind_signer> from(openssl::key key);

  const rsa_public& published() const noexcept { return public_; }
  EVP_PKEY* key() const noexcept { return key_.get(); }
  /// Refuses numbers of another size and those not below the modulus. What is signed is checked
  /// before it leaves: a wrong one could give the key away.
  result<std::vector<std::byte>> sign(bytes_view blinded) const;

 private:
  blind_signer(openssl::key key, rsa_public published)
      : key_(std::move(key)), public_(std::move(published)) {}
  openssl::key key_;
  rsa_public public_;
};

}  // namespace lethe
