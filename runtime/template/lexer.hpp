#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace lethe::jinja {

enum class token_kind : uint8_t {
  data,
  print_begin,
  print_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  sign,
  end
};

/// `text` points into the source; a string's still holds its escapes.
struct token {
  token_kind what;
  uint32_t line;
  std::string_view text;
};

/// The template's lines end in \n, and a last empty line is dropped, as Jinja does.
std::string with_plain_line_ends(std::string_view source);

/// Cuts a template as Jinja does with trim_blocks and lstrip_blocks on, which is how chat
/// templates are written.
result<std::vector<token>> tokenize(std::string_view source);

/// A string literal's text, its escapes replaced as Python does.
result<std::string> unescape(const token& literal);

}  // namespace lethe::jinja
