#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

/// What the heads of requests and of answers are read with.
namespace lethe::head_text {

inline constexpr std::string_view head_end = "\r\n\r\n";

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; }

inline bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

inline std::string_view trimmed(std::string_view text) {
  auto from = text.find_first_not_of(" \t");
  if (from == text.npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

/// Takes what lies before `end` out of `rest`, and `end` with it.
inline std::string_view cut(std::string_view& rest, std::string_view end) {
  auto at = rest.find(end);
  auto piece = rest.substr(0, at);
  rest = at == rest.npos ? std::string_view{} : rest.substr(at + end.size());
  return piece;
}

inline bool lists(std::string_view value, std::string_view word) {
  while (!value.empty())
    if (same_name(trimmed(cut(value, ",")), word)) return true;
  return false;
}

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// False for more digits than any length has.
inline bool read_digits(std::string_view digits, uint64_t& value) {
  constexpr size_t digits_max = 18;  // fits 64 bits
  if (digits.size() > digits_max) return false;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return true;
}

}  // namespace lethe::head_text
