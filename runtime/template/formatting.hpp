#pragma once

#include <string_view>

#include "runtime/template/builtin.hpp"

namespace lethe::jinja {

/// One field of a format: how wide, which side, which notation.
struct field {
  std::string_view fill = " ";
  char align = 0;   // < > ^ =, or 0: the type's own
  char sign = '-';  // '-', '+', ' '
  bool alternate = false, comma = false;
  int64_t width = 0, precision = -1;
  char type = 0;
};

void append_field(rendering& r, text_sink& to, const field& f, const value& v);
/// str.format: {}, {0}, {name}, each with a format behind a colon.
value format_braces(rendering& r, std::string_view format, const arguments& in);

}  // namespace lethe::jinja
