#pragma once

#include "runtime/base/secret_bytes.hpp"

namespace lethe {

inline constexpr size_t pss_salt_bytes = 48;

/// EMSA-PSS-ENCODE of RFC 8017 section 9.1.1 with SHA-384 and MGF1-SHA384, for a modulus of so many
/// bytes whose first bit is set: one bit less is encoded. OpenSSL has this only with a salt of its
/// own, as a part of signing.
secret_bytes pss_encode(bytes_view message, bytes_view salt, size_t modulus_bytes);

}  // namespace lethe
