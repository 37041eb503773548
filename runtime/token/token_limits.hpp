#pragma once

#include <cstddef>
#include <cstdint>

/// Bounds on what the token parsers accept.
namespace lethe::limits {

inline constexpr size_t token_batch_max = 256;  // requests in one purchase: 65 KiB
inline constexpr size_t token_issuer_bytes_max = 255;
inline constexpr size_t token_origin_bytes_max = 1024;
inline constexpr size_t auth_header_bytes_max = 16u << 10;
inline constexpr size_t auth_schemes_max = 16;  // in one header
inline constexpr size_t auth_params_max = 16;   // of one scheme
inline constexpr size_t token_directory_bytes_max = 64u << 10;
inline constexpr size_t token_directory_keys_max = 16;
inline constexpr size_t token_uri_bytes_max = 2048;
inline constexpr size_t issuer_keys_max = 4;  // next, current, previous, and one that retires

}  // namespace lethe::limits
