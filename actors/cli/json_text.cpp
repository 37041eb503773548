#include "actors/cli/json_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

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
  for (char c : value) {
    if (c == '"' || c == '\\') {
      out_.push_back('\\');
      out_.push_back(c);
    } else if (c == '\n') {
      out_.append("\\n");
    } else if (uint8_t(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", uint8_t(c));
    } else {
      out_.push_back(c);
    }
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
