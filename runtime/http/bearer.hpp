#pragma once

#include "runtime/http/head_text.hpp"
#include "runtime/http/request_head.hpp"

namespace lethe {

/// What the Authorization field has behind the scheme Bearer, whose case is free (RFC 9110, section
/// 11.1); empty: another scheme, or nothing.
inline std::string_view bearer_of(const http_head& head) {
  constexpr std::string_view scheme = "bearer ";
  const auto field = head.field("authorization");
  if (!head_text::same_name(field.substr(0, scheme.size()), scheme)) return {};
  return head_text::trimmed(field.substr(scheme.size()));
}

}  // namespace lethe
