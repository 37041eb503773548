#pragma once

#include "runtime/base/result.hpp"
#include "runtime/crypto/openssl.hpp"
#include "runtime/crypto/sha256.hpp"

namespace lethe {

inline constexpr size_t signature_bytes = 64;
using signature = std::array<std::byte, signature_bytes>;

/// An Ed25519 key (RFC 8032) in memory that OpenSSL clears.
class signing_key {
 public:
  static signing_key make();
  static result<signing_key> from_private(bytes_view private_key);

  const hash32& public_key() const noexcept { return public_; }
  signature sign(bytes_view message) const;

 private:
  explicit signing_key(openssl::key key);
  openssl::key key_;
  hash32 public_;
};

bool verify_signature(const hash32& public_key, bytes_view message, bytes_view signature);

}  // namespace lethe
