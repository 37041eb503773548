#include "runtime/json/json_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "runtime/base/utf8.hpp"

namespace lethe {

void json_text::separate() {
  if (!first_) out_.push_back(',');
  first_ = false;
}

json_text& json_text::open(char bracket) {
  separate();
  out_.push_back(bracket);
  first_ = true;
  return *this;
}

json_text& json_text::close(char bracket) {
  out_.push_back(bracket);
  first_ = false;
  return *this;
}

json_text& json_text::key(std::string_view name) {
  text(name);
  out_.push_back(':');
  first_ = true;
  return *this;
}

json_text& json_text::text(std::string_view value) {
  separate();
  out_.push_back('"');
  for (size_t at = 0; at < value.size();) {
    auto c = utf8::at(value, at);
    if (c.code == '"' || c.code == '\\') {
      out_.push_back('\\');
      out_.push_back(char(c.code));
    } else if (c.code == '\n') {
      out_.append("\\n");
    } else if (c.code < 0x20 || c.code == 0x7f) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", uint32_t(c.code));
    } else {
      utf8::append(out_, c.code);
    }
    at += c.length;
  }
  out_.push_back('"');
  return *this;
}

json_text& json_text::number(uint64_t value) {
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

json_text& json_text::number(double value) {
  if (!std::isfinite(value)) return null();
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

json_text& json_text::boolean(bool value) { return raw(value ? "true" : "false"); }

json_text& json_text::null() { return raw("null"); }

json_text& json_text::raw(std::string_view json) {
  separate();
  out_.append(json);
  return *this;
}

json_text& json_text::ids(std::span<const uint32_t> values) {
  open('[');
  for (uint32_t id : values) number(uint64_t{id});
  return close(']');
}

}  // namespace lethe
