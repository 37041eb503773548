#pragma once

#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/token/big_number.hpp"
#include "runtime/token/pss_encode.hpp"

namespace lethe {

/// The public half of a key that signs blindly (RFC 9474).
class rsa_public {
 public:
  static constexpr size_t modulus_bytes_min = 256, modulus_bytes_max = 512;

  /// The modulus is odd and fills its bytes; the exponent is 65537.
  static result<rsa_public> from(bytes_view modulus);

  bytes_view modulus() const noexcept { return modulus_; }
  size_t bytes() const noexcept { return modulus_.size(); }
  /// Whether that is as long as the modulus and less.
  bool holds(bytes_view number) const noexcept;
  /// An RSASSA-PSS signature with SHA-384, MGF1-SHA384 and a salt of so many bytes.
  bool verifies(bytes_view message, bytes_view signature, size_t salt_bytes = pss_salt_bytes) const;
  /// Whether signature^e = number.
  bool is_raw_signature(bytes_view signature, bytes_view number) const;

  /// a·b and a^e modulo n, in a time that says nothing of secret numbers.
  openssl::number product(const BIGNUM* a, const BIGNUM* b, BN_CTX* context) const;
  openssl::number power(const BIGNUM* a, BN_CTX* context) const;
  /// Null for what has no inverse.
  openssl::number inverse(const BIGNUM* a, BN_CTX* context) const;
  /// From 0 to n - 1.
  openssl::number random() const;

 private:
  rsa_public() = default;
  std::vector<std::byte> modulus_;  // big-endian
  openssl::number n_, e_;
  openssl::montgomery mont_;
  openssl::key key_;
};

}  // namespace lethe
