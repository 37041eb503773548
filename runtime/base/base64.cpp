#include "runtime/base/base64.hpp"

#include <algorithm>

namespace lethe {

namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Four characters from up to three bytes.
void append_group(std::string& out, bytes_view in) {
  uint32_t bits = 0;
  for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < in.size() ? uint8_t(in[i]) : 0);
  for (size_t i = 0; i < 4; ++i)
    out.push_back(i <= in.size() ? alphabet[bits >> (18 - 6 * i) & 63] : '=');
}

}  // namespace

std::string to_base64(bytes_view bytes) {
  std::string out;
  out.reserve(base64_chars(bytes.size()));
  for (; !bytes.empty(); bytes = bytes.subspan(std::min<size_t>(3, bytes.size())))
    append_group(out, bytes.first(std::min<size_t>(3, bytes.size())));
  return out;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::vector<std::byte> out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool pad = i >= text.size() - padding;
    const size_t digit = pad ? 0 : alphabet.find(text[i]);
    if (digit == alphabet.npos) return {};
    bits = bits << 6 | uint32_t(digit);
    if (i % 4 != 3) continue;
    for (int shift : {16, 8, 0}) out.push_back(std::byte(uint8_t(bits >> shift)));
    bits = 0;
  }
  for (size_t i = 0; i < padding; ++i) {
    if (out.back() != std::byte{}) return {};
    out.pop_back();
  }
  return out;
}

}  // namespace lethe
