#pragma once

#include <string_view>

/// What oblivious HTTP is called on the wire (RFC 9458, sections 3, 4.3 and 5.3; RFC 9540, section
/// 3; draft-ietf-ohai-chunked-ohttp, section 3).
namespace lethe::ohttp_names {

inline constexpr std::string_view request = "message/ohttp-req";
inline constexpr std::string_view response = "message/ohttp-res";
inline constexpr std::string_view chunked_request = "message/ohttp-chunked-req";
inline constexpr std::string_view chunked_response = "message/ohttp-chunked-res";
inline constexpr std::string_view keys = "application/ohttp-keys";

/// Where a gateway publishes its keys.
inline constexpr std::string_view gateway_path = "/.well-known/ohttp-gateway";

/// What a gateway answers, with 400, to a key that it does not have or no longer accepts.
inline constexpr std::string_view problem = "application/problem+json";
inline constexpr std::string_view key_problem =
    "https://iana.org/assignments/http-problem-types#ohttp-key";

}  // namespace lethe::ohttp_names
