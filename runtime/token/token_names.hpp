#pragma once

#include <cstdint>
#include <string_view>

/// Names that RFC 9577, RFC 9578 and the draft for batches give.
namespace lethe {

inline constexpr uint16_t token_type_blind_rsa = 2;

inline constexpr std::string_view token_auth_scheme = "PrivateToken";
inline constexpr std::string_view token_directory_path =
    "/.well-known/private-token-issuer-directory";

inline constexpr std::string_view token_directory_media =
    "application/private-token-issuer-directory";
inline constexpr std::string_view token_request_media = "application/private-token-request";
inline constexpr std::string_view token_response_media = "application/private-token-response";
inline constexpr std::string_view token_batch_request_media =
    "application/private-token-generic-batch-request";
inline constexpr std::string_view token_batch_response_media =
    "application/private-token-generic-batch-response";

}  // namespace lethe
