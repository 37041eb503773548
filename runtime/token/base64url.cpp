#include "runtime/token/base64url.hpp"

#include <algorithm>

#include "runtime/base/check.hpp"

namespace lethe {

namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '-' ? 62 : c == '_' ? 63 : -1;
}

}  // namespace

void write_base64url(bytes_view bytes, std::span<char> to) {
  check(to.size() == base64url_chars(bytes.size()));
  auto out = to.begin();
  for (; !bytes.empty(); bytes = bytes.subspan(std::min<size_t>(3, bytes.size()))) {
    uint32_t three = 0;
    for (size_t i = 0; i < 3; ++i) three = three << 8 | (i < bytes.size() ? uint8_t(bytes[i]) : 0);
    for (size_t i = 0; i < 4; ++i)
      *out++ = i <= bytes.size() ? digits[three >> (18 - 6 * i) & 63] : '=';
  }
}

std::string to_base64url(bytes_view bytes) {
  std::string text(base64url_chars(bytes.size()), '\0');
  write_base64url(bytes, text);
  return text;
}

std::optional<std::vector<std::byte>> read_base64url(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  size_t held = 0;  // of them
  for (char c : text.substr(0, text.size() - padding)) {
    const int value = value_of(c);
    if (value < 0) return {};
    bits = bits << 6 | uint32_t(value);
    held += 6;
    if (held >= 8) bytes.push_back(std::byte(uint8_t(bits >> (held -= 8))));
  }
  if ((bits & ((1u << held) - 1)) != 0) return {};
  return bytes;
}

}  // namespace lethe
