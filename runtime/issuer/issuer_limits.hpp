#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/token/token_limits.hpp"
#include "runtime/token/token_request.hpp"

/// Bounds of an issuer.
namespace lethe::limits {

/// A purchase of the largest batch, whose length is a varint of four bytes.
inline constexpr size_t issuer_body_bytes_max = 4 + token_batch_max * token_request::wire_bytes;
inline constexpr uint32_t issuer_waiting_max = 256;  // requests that wait for a thread: 16 MiB
inline constexpr uint32_t issuer_busy_retry_s = 5;
inline constexpr uint32_t directory_age_max_s = 3600;
inline constexpr size_t shared_secret_bytes_min = 32, shared_secret_bytes_max = 256;

}  // namespace lethe::limits
