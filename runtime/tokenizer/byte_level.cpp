#include "runtime/tokenizer/byte_level.hpp"

#include <array>

#include "runtime/base/utf8.hpp"

namespace lethe::byte_level {
namespace {

// Latin-1's printable characters stand for themselves, the other 68 bytes for U+0100 onwards.
constexpr bool printable(uint32_t b) {
  return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
}

constexpr auto to_character = [] {
  std::array<uint16_t, 256> map = {};
  uint16_t next = 256;
  for (uint32_t b = 0; b < 256; b++) map[b] = printable(b) ? uint16_t(b) : next++;
  return map;
}();

constexpr auto to_byte = [] {
  std::array<int16_t, 256 + 68> map = {};
  map.fill(-1);
  for (uint32_t b = 0; b < 256; b++) map[to_character[b]] = int16_t(b);
  return map;
}();

}  // namespace

char32_t character(uint8_t byte) noexcept { return to_character[byte]; }

std::optional<uint8_t> byte(char32_t character) noexcept {
  if (character >= to_byte.size() || to_byte[character] < 0) return {};
  return uint8_t(to_byte[character]);
}

char* write_characters(std::string_view bytes, char* to) noexcept {
  for (char b : bytes) {
    uint16_t c = to_character[uint8_t(b)];
    bool two = c >= 0x80;  // none is beyond U+07FF
    to[0] = two ? char(0xC0 | c >> 6) : char(c);
    to[1] = char(0x80 | (c & 63));
    to += two ? 2 : 1;
  }
  return to;
}

bool append_bytes(std::string_view characters, std::pmr::string& out) {
  size_t before = out.size();
  for (size_t i = 0; i < characters.size();) {
    auto s = utf8::at(characters, i);
    auto b = byte(s.code);
    if (!b) {
      out.resize(before);
      return false;
    }
    out.push_back(char(*b));
    i += s.length;
  }
  return true;
}

}  // namespace lethe::byte_level
