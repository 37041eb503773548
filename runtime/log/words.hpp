#pragma once

#include <algorithm>
#include <string_view>

#include "runtime/log/log_limits.hpp"

namespace lethe {

inline constexpr std::string_view word_form =
    "1 to 64 of lower-case letters, digits, '.', '_', '-' and '/'";
static_assert(limits::roster_word_bytes_max == 64);

/// Names of model classes and kinds of evidence: one spelling each, nothing to escape.
constexpr bool is_word(std::string_view text) noexcept {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' ||
           c == '/';
  };
  return !text.empty() && text.size() <= limits::roster_word_bytes_max &&
         std::ranges::all_of(text, plain);
}

}  // namespace lethe
