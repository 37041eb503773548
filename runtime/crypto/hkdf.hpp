#pragma once

#include <initializer_list>

#include "runtime/crypto/key_bytes.hpp"

/// HKDF with SHA-256 (RFC 5869). Input and info may come in parts.
namespace lethe {

inline constexpr size_t hkdf_hash_bytes = 32;

key_bytes hkdf_extract(bytes_view salt, std::initializer_list<bytes_view> input);
/// `bytes` is at most what a key_bytes holds.
key_bytes hkdf_expand(bytes_view prk, std::initializer_list<bytes_view> info, size_t bytes);
/// For exports of any length up to RFC 5869's 255 hashes.
void hkdf_expand(bytes_view prk, std::initializer_list<bytes_view> info, std::span<std::byte> out);

}  // namespace lethe
