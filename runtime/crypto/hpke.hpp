#pragma once

#include "runtime/crypto/aead.hpp"
#include "runtime/crypto/dhkem.hpp"

/// HPKE (RFC 9180), base mode.
namespace lethe {

/// What lies on the wire before it is known to be one of ours.
struct hpke_suite {
  static constexpr uint16_t hkdf_sha256 = 1;
  static constexpr size_t wire_bytes = 6;

  uint16_t kem = hpke_key::kem_x25519;
  uint16_t kdf = hkdf_sha256;
  uint16_t aead = uint16_t(aead_id::aes_128_gcm);

  bool operator==(const hpke_suite&) const = default;
  aead_id cipher() const noexcept { return aead_id(aead); }
  /// Nk; of a suite that is known.
  size_t cipher_key_bytes() const noexcept { return aead_key_bytes(cipher()); }
  /// Npk and Nenc; of a suite that is known.
  size_t public_bytes() const noexcept { return kem_public_bytes(kem); }

  std::array<std::byte, wire_bytes> bytes() const noexcept;
  static hpke_suite from_bytes(std::span<const std::byte, wire_bytes> bytes) noexcept;
};

/// n of a response: its nonce and the exported secret have this length. Of a suite that is known.
inline size_t answer_nonce_bytes(const hpke_suite& suite) {
  return std::max(aead_nonce_bytes, suite.cipher_key_bytes());
}

/// Refuses KEMs, KDFs and AEADs that this release does not have.
result<void> expect_known(const hpke_suite& suite);

/// What both ends derive from the shared secret: the key schedule of section 5.1.
struct hpke_keys {
  aead cipher;
  nonce_counter nonces;
  key_bytes exporter;
  std::array<std::byte, 10> suite_id;  // "HPKE" and the suite

  /// Export(context, out.size()).
  void export_to(bytes_view context, std::span<std::byte> out) const;
  key_bytes export_key(bytes_view context, size_t bytes) const;
};

class hpke_sender {
 public:
  static result<hpke_sender> make(const hpke_suite& suite, bytes_view receiver_public,
                                  bytes_view info);
  /// With an ephemeral key that is used nowhere else, as published vectors prescribe.
  static result<hpke_sender> make(const hpke_suite& suite, bytes_view receiver_public,
                                  bytes_view info, const hpke_key& ephemeral);

  /// What the receiver needs besides the sealed messages.
  bytes_view enc() const noexcept { return enc_; }
  /// Appends the next message, sealed. The n-th is opened by the receiver's n-th open.
  result<void> seal(bytes_view aad, bytes_view plain, std::vector<std::byte>& out);
  /// The next message is this one; numbers only rise.
  void skip_to(uint64_t number) noexcept { keys_.nonces.skip_to(number); }
  const hpke_keys& keys() const noexcept { return keys_; }
  /// For messages that are sealed and opened elsewhere; the context is at its end.
  hpke_keys take_keys() && noexcept { return std::move(keys_); }

 private:
  hpke_sender(hpke_keys keys, bytes_view enc)
      : keys_(std::move(keys)), enc_(enc.begin(), enc.end()) {}
  hpke_keys keys_;
  std::vector<std::byte> enc_;
};

class hpke_receiver {
 public:
  static result<hpke_receiver> make(const hpke_suite& suite, const hpke_key& key, bytes_view enc,
                                    bytes_view info);

  /// Writes sealed.size() - aead_tag_bytes to `out`. A message that does not open leaves the
  /// context waiting for the right one.
  result<void> open(bytes_view aad, bytes_view sealed, std::byte* out);
  /// The next message is this one; numbers only rise.
  void skip_to(uint64_t number) noexcept { keys_.nonces.skip_to(number); }
  const hpke_keys& keys() const noexcept { return keys_; }
  /// For messages that are sealed and opened elsewhere; the context is at its end.
  hpke_keys take_keys() && noexcept { return std::move(keys_); }

 private:
  explicit hpke_receiver(hpke_keys keys) : keys_(std::move(keys)) {}
  hpke_keys keys_;
};

}  // namespace lethe
