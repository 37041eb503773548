#include <utility>

#include "runtime/template/builtin.hpp"
#include "runtime/template/unicode.hpp"
#include "runtime/template/words.hpp"

namespace lethe::jinja {
namespace {

/// True where the text is not empty and every point fits.
template <class Fits>
value every(rendering& r, const arguments& in, Fits&& fits) {
  const auto text = in.self.text;
  r.step(4 * text.size());
  for (size_t at = 0; at < text.size();) {
    if (!fits(next_point(text, at))) return value(false);
  }
  return value(!text.empty());
}

value isdigit(rendering& r, const arguments& in) { return every(r, in, is_digit); }
value isalpha(rendering& r, const arguments& in) { return every(r, in, is_letter); }
value isspace(rendering& r, const arguments& in) { return every(r, in, is_space); }
value isalnum(rendering& r, const arguments& in) {
  return every(r, in, [](char32_t c) { return is_letter(c) || is_digit(c); });
}
value isascii(rendering& r, const arguments& in) {
  return value(in.self.text.empty() || every(r, in, [](char32_t c) { return c < 0x80; }).flag);
}
value isidentifier(rendering& r, const arguments& in) {
  return every(r, in, [first = true](char32_t c) mutable {
    return c == '_' || is_letter(c) || (!std::exchange(first, false) && is_digit(c));
  });
}

/// At least one letter with a case, and none of the other case.
value one_case(rendering& r, std::string_view text, bool (*wanted)(char32_t),
               bool (*other)(char32_t)) {
  r.step(4 * text.size());
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_point(text, at);
    if (other(c)) return value(false);
    any |= wanted(c);
  }
  return value(any);
}
value isupper(rendering& r, const arguments& in) {
  return one_case(r, in.self.text, is_upper, is_lower);
}
value islower(rendering& r, const arguments& in) {
  return one_case(r, in.self.text, is_lower, is_upper);
}

value istitle(rendering& r, const arguments& in) {
  bool inside = false, any = false;
  r.step(4 * in.self.text.size());
  for (size_t at = 0; at < in.self.text.size();) {
    const char32_t c = next_point(in.self.text, at);
    if ((is_upper(c) && inside) || (is_lower(c) && !inside)) return value(false);
    inside = is_upper(c) || is_lower(c);
    any |= inside;
  }
  return value(any);
}

value to_title(rendering& r, const arguments& in) {
  text_sink out(r);
  bool inside = false;
  r.step(4 * in.self.text.size());
  for (size_t at = 0; at < in.self.text.size() && r.ok();) {
    const char32_t c = next_point(in.self.text, at);
    out.append(encode(inside ? lower(c) : upper(c)));
    inside = is_upper(c) || is_lower(c);
  }
  return value(out.view());
}

value swapcase(rendering& r, const arguments& in) {
  text_sink out(r);
  r.step(4 * in.self.text.size());
  for (size_t at = 0; at < in.self.text.size() && r.ok();) {
    const char32_t c = next_point(in.self.text, at);
    out.append(encode(is_upper(c) ? lower(c) : upper(c)));
  }
  return value(out.view());
}

value upper_case(rendering& r, const arguments& in) { return value(to_upper(r, in.self.text)); }
value lower_case(rendering& r, const arguments& in) { return value(to_lower(r, in.self.text)); }
value capitalize(rendering& r, const arguments& in) { return value(capitalized(r, in.self.text)); }

}  // namespace

builtins text_checks() {
  static constexpr builtin rows[] = {
      {"isdigit", isdigit},  {"isdecimal", isdigit},         {"isnumeric", isdigit},
      {"isalpha", isalpha},  {"isalnum", isalnum},           {"isspace", isspace},
      {"isascii", isascii},  {"isidentifier", isidentifier}, {"isupper", isupper},
      {"islower", islower},  {"istitle", istitle},           {"upper", upper_case},
      {"lower", lower_case}, {"casefold", lower_case},       {"capitalize", capitalize},
      {"title", to_title},   {"swapcase", swapcase},
  };
  return rows;
}

}  // namespace lethe::jinja
