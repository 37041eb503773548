#include "runtime/base/json_numbers.hpp"

namespace lethe {

namespace {

/// 64 bits hold every integer of fewer digits.
constexpr size_t wide_digits = 19;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

size_t end_of_text(std::string_view json, size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at)
    if (json[at] == '\\') ++at;
  return at + 1;
}

size_t end_of_digits(std::string_view json, size_t at) {
  while (at < json.size() && is_digit(json[at])) ++at;
  return at;
}

/// Past the digits, point and exponent: a fraction's own digits are no integer.
size_t end_of_number(std::string_view json, size_t at) {
  while (at < json.size() &&
         (is_digit(json[at]) || std::string_view("+-.eE").find(json[at]) != std::string_view::npos))
    ++at;
  return at;
}

}  // namespace

std::string widen_integers(std::string_view json) {
  std::string out;
  out.reserve(json.size() + 16);
  for (size_t at = 0; at < json.size();) {
    size_t end = at + 1;
    bool wide = false;
    if (json[at] == '"') {
      end = end_of_text(json, at);
    } else if (is_digit(json[at])) {
      size_t digits = end_of_digits(json, at);
      end = end_of_number(json, digits);
      wide = end == digits && digits - at >= wide_digits;
    }
    out += json.substr(at, end - at);
    if (wide) out += ".0";
    at = end;
  }
  return out;
}

}  // namespace lethe
