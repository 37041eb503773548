#include "runtime/template/unicode.hpp"

namespace lethe::jinja {
namespace {

/// The bytes of the sequence that `lead` opens; 0: none.
size_t sequence_size(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

bool is_start(char c) { return (c & 0xC0) != 0x80; }

}  // namespace

bool is_utf8(std::string_view text) {
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  for (size_t at = 0; at < text.size();) {
    const size_t size = sequence_size(static_cast<unsigned char>(text[at]));
    if (size == 0 || size > text.size() - at) return false;
    for (size_t i = 1; i < size; ++i) {
      if (is_start(text[at + i])) return false;
    }
    const char32_t c = next_point(text, at);
    if (c < least[size] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return false;
  }
  return true;
}

char32_t next_point(std::string_view text, size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80) return lead;
  const int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  char32_t c = lead & (0x3F >> more);
  for (int i = 0; i < more && at < text.size(); ++i) c = c << 6 | (text[at++] & 0x3F);
  return c;
}

size_t point_count(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += is_start(c);
  return count;
}

size_t point_offset(std::string_view text, size_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (is_start(text[at]) && index-- == 0) break;
  }
  return at;
}

utf8 encode(char32_t c) {
  const auto tail = [](char32_t bits) { return char(0x80 | (bits & 0x3F)); };
  if (c < 0x80) return {{char(c)}, 1};
  if (c < 0x800) return {{char(0xC0 | c >> 6), tail(c)}, 2};
  if (c < 0x10000) return {{char(0xE0 | c >> 12), tail(c >> 6), tail(c)}, 3};
  return {{char(0xF0 | c >> 18), tail(c >> 12), tail(c >> 6), tail(c)}, 4};
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_upper(char32_t c) { return lower(c) != c; }
bool is_lower(char32_t c) { return upper(c) != c || c == 0xDF; }

}  // namespace lethe::jinja
