#pragma once

#include <string_view>

/// What requests to nodes are called on the wire (docs/PROTOCOL.md, sections 6a and 8).
namespace lethe::sealed_names {

inline constexpr std::string_view request = "application/lethe-sealed-req";
inline constexpr std::string_view response = "application/lethe-sealed-res";
inline constexpr std::string_view claim = "application/lethe-change";
inline constexpr std::string_view roster = "application/lethe-roster";
inline constexpr std::string_view problem = "application/problem+json";

inline constexpr std::string_view sealed_path = "/sealed";
inline constexpr std::string_view change_path = "/change";
inline constexpr std::string_view roster_path = "/roster";
inline constexpr std::string_view issuer_path = "/issuer-directory";

inline constexpr std::string_view change_field = "lethe-change";
inline constexpr std::string_view refusal_field = "lethe-refusal";
inline constexpr std::string_view due = "due", none = "none";

}  // namespace lethe::sealed_names
