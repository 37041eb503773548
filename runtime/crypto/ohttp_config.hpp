#pragma once

#include <vector>

#include "runtime/crypto/hpke.hpp"
#include "runtime/crypto/ohttp_limits.hpp"

namespace lethe {

/// A key that a gateway publishes (RFC 9458, section 3.1).
struct ohttp_config {
  struct symmetric {
    uint16_t kdf = hpke_suite::hkdf_sha256;
    uint16_t aead = uint16_t(aead_id::aes_128_gcm);
    bool operator==(const symmetric&) const = default;
  };

  uint8_t key_id = 0;
  uint16_t kem = hpke_key::kem_x25519;
  std::vector<std::byte> pk;
  std::vector<symmetric> algorithms;  // the gateway's favourite first; also those we don't know

  bool operator==(const ohttp_config&) const = default;
  std::vector<std::byte> to_bytes() const;
  /// Of exactly one key, of a KEM that this release has.
  static result<ohttp_config> from_bytes(bytes_view bytes);
  /// The one that everybody takes: the first that this release has.
  result<hpke_suite> suite() const;
};

/// application/ohttp-keys (RFC 9458, section 3.2).
std::vector<std::byte> write_ohttp_keys(std::span<const ohttp_config> keys);
/// At least one key. Any error refuses the whole list, lest what a client recovers of it tell
/// clients apart: a wrong length, bytes left over, an id that comes twice. Only an entry of a KEM
/// that this release does not have is passed over by its length, as that length is there for; it
/// must be long enough to be a key.
result<std::vector<ohttp_config>> read_ohttp_keys(bytes_view bytes);

}  // namespace lethe
