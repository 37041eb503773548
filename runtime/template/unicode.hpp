#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Text as Python sees it: a row of code points. Texts are valid UTF-8; the two edges where bytes
/// come in (template source, JSON) refuse anything else.
namespace lethe::jinja {

bool is_utf8(std::string_view text);
/// The code point at `at`, which moves behind it.
char32_t next_point(std::string_view text, size_t& at);
size_t point_count(std::string_view text);
/// The byte offset of the code point number `index`, or the text's size.
size_t point_offset(std::string_view text, size_t index);

struct utf8 {
  char bytes[4];
  uint8_t size;
  operator std::string_view() const { return {bytes, size}; }
};
utf8 encode(char32_t point);

bool is_space(char32_t c);
bool is_line_end(char32_t c);
bool is_letter(char32_t c);
bool is_digit(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
/// What `repr` prints as it is.
bool is_printable(char32_t c);
char32_t upper(char32_t c);
char32_t lower(char32_t c);

}  // namespace lethe::jinja
