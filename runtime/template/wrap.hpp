#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/template/rendering.hpp"

namespace lethe::jinja {

struct wrapping {
  int64_t width = 79;
  bool breaks_words = true;  // those longer than a line
  bool breaks_at_hyphens = true;
};

/// One line as Python's textwrap.wrap cuts it, `between` its parts.
void append_wrapped(rendering& r, text_sink& to, std::string_view line, const wrapping& how,
                    std::string_view between);

}  // namespace lethe::jinja
