#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lethe::utf8 {

enum class sequence_state : uint8_t { whole, broken, cut };

/// What stands at one place of a text. A `broken` sequence is as long as the longest start of a
/// valid one (at least 1), which becomes one U+FFFD; `cut` would be valid if the text went on.
struct sequence {
  char32_t code = 0xFFFD;
  uint32_t length = 1;
  sequence_state state = sequence_state::broken;
};

/// As `at`, for any sequence.
sequence any_at(std::string_view text, size_t at) noexcept;

/// `at` must be inside the text.
inline sequence at(std::string_view text, size_t at) noexcept {
  auto first = uint8_t(text[at]);
  if (first < 0x80) return {first, 1, sequence_state::whole};
  if (first >= 0xC2 && first < 0xE0 && text.size() - at > 1) {
    auto second = uint8_t(text[at + 1]);
    if ((second & 0xC0) == 0x80)
      return {char32_t((first & 31) << 6 | (second & 63)), 2, sequence_state::whole};
  }
  if (first > 0xE0 && first < 0xED && text.size() - at > 2) {
    auto second = uint8_t(text[at + 1]), third = uint8_t(text[at + 2]);
    if ((second & 0xC0) == 0x80 && (third & 0xC0) == 0x80)
      return {char32_t((first & 15) << 12 | (second & 63) << 6 | (third & 63)), 3,
              sequence_state::whole};
  }
  return any_at(text, at);
}

/// Where the first byte is that is no UTF-8, or npos.
size_t first_invalid(std::string_view text) noexcept;

template <class String>
void append(String& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(char(c));
  } else if (c < 0x800) {
    out.push_back(char(0xC0 | c >> 6));
    out.push_back(char(0x80 | (c & 63)));
  } else if (c < 0x10000) {
    out.push_back(char(0xE0 | c >> 12));
    out.push_back(char(0x80 | (c >> 6 & 63)));
    out.push_back(char(0x80 | (c & 63)));
  } else {
    out.push_back(char(0xF0 | c >> 18));
    out.push_back(char(0x80 | (c >> 12 & 63)));
    out.push_back(char(0x80 | (c >> 6 & 63)));
    out.push_back(char(0x80 | (c & 63)));
  }
}

/// Appends `text` with U+FFFD for what is invalid. Returns how many bytes were taken: all, or,
/// when `more_follows`, all but a cut sequence at the end.
template <class String>
size_t append_mended(String& out, std::string_view text, bool more_follows) {
  size_t i = 0;
  while (i < text.size()) {
    size_t good = first_invalid(text.substr(i));
    if (good > text.size() - i) good = text.size() - i;
    out.append(text.substr(i, good));
    i += good;
    if (i == text.size()) break;
    sequence s = at(text, i);
    if (s.state == sequence_state::cut && more_follows) break;
    out.append("\xEF\xBF\xBD");
    i += s.length;
  }
  return i;
}

}  // namespace lethe::utf8
