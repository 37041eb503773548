#include "runtime/base/utf8.hpp"

#include <cstring>

namespace lethe::utf8 {
namespace {

struct lead {
  uint8_t length = 0;               // 0: no sequence starts with this byte
  uint8_t low = 0x80, high = 0xBF;  // bounds of the second byte (Unicode 15, table 3-7)
};

lead lead_of(uint8_t b) noexcept {
  if (b < 0x80) return {1};
  if (b < 0xC2) return {0};
  if (b < 0xE0) return {2};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b < 0xF0) return {3};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b < 0xF4) return {4};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

sequence any_at(std::string_view text, size_t at) noexcept {
  auto byte = [&](size_t i) { return uint8_t(text[i]); };
  uint8_t first = byte(at);
  lead l = lead_of(first);
  if (l.length == 0) return {};
  if (l.length == 1) return {first, 1, sequence_state::whole};
  char32_t code = first & (0x7F >> l.length);
  for (uint32_t i = 1; i < l.length; i++) {
    if (at + i == text.size()) return {0xFFFD, i, sequence_state::cut};
    uint8_t b = byte(at + i);
    if (b < (i == 1 ? l.low : 0x80) || b > (i == 1 ? l.high : 0xBF))
      return {0xFFFD, i, sequence_state::broken};
    code = code << 6 | (b & 63);
  }
  return {code, l.length, sequence_state::whole};
}

size_t first_invalid(std::string_view text) noexcept {
  size_t i = 0;
  while (i < text.size()) {
    uint64_t eight;
    if (text.size() - i >= 8) {
      std::memcpy(&eight, text.data() + i, 8);
      if ((eight & 0x8080808080808080) == 0) {
        i += 8;
        continue;
      }
    }
    sequence s = at(text, i);
    if (s.state != sequence_state::whole) return i;
    i += s.length;
  }
  return std::string_view::npos;
}

}  // namespace lethe::utf8
