#pragma once

#include <string_view>

#include "runtime/template/rendering.hpp"

namespace lethe::jinja {

/// JSON text as a value, in the rendering's memory: keys keep their order, of two equal keys the
/// later one's value stays, whole numbers keep 64 bits (larger ones become floats). Parsed here and
/// not by a library because its buffers would hold content outside of the request's arena. `what`
/// names the text in errors.
value read_json(rendering& r, std::string_view text, std::string_view what);

struct json_style {
  std::string_view between = ", ", after_key = ": ";
  std::string_view indent;
  bool lines = false, ascii = false, sorted = false;
};

/// Python's json.dumps.
void append_json(rendering& r, text_sink& to, const value& v, const json_style& style);

}  // namespace lethe::jinja
