#include <algorithm>
#include <utility>

#include "runtime/template/builtin.hpp"
#include "runtime/template/json.hpp"
#include "runtime/template/operators.hpp"
#include "runtime/template/unicode.hpp"
#include "runtime/template/words.hpp"
#include "runtime/template/wrap.hpp"

namespace lethe::jinja {
namespace {

value tojson(rendering& r, const arguments& in) {
  json_style style{.ascii = in.flag(0, false), .sorted = in.flag(3, false)};
  const value indent = in.at(1, none_value()), separators = in.at(2, none_value());
  if (indent.is_whole()) {
    const int64_t width = std::max<int64_t>(indent.as_whole(), 0);
    if (width > limits::template_width_max) return r.fail("tojson: indent is too large");
    text_sink blanks(r);
    blanks.append(size_t(width), ' ');
    style.indent = blanks.view();
  } else if (indent.is_text()) {
    style.indent = indent.text;
  } else if (!indent.is(kind::none)) {
    return r.fail("tojson: indent is {}", type_name(indent));
  }
  style.lines = !indent.is(kind::none);
  if (style.lines) style.between = ",";
  if (!separators.is(kind::none)) {
    const auto two = elements(r, separators);
    if (two.size() != 2 || !two[0].is_text() || !two[1].is_text()) {
      return r.fail("tojson: separators must be two strings");
    }
    style.between = two[0].text;
    style.after_key = two[1].text;
  }
  text_sink out(r);
  append_json(r, out, in.self, style);
  return value(out.view());
}

value string(rendering& r, const arguments& in) { return value(as_text(r, in.self)); }

value trim(rendering& r, const arguments& in) {
  return value(stripped(r, as_text(r, in.self), in.at(0), true, true));
}
value upper_case(rendering& r, const arguments& in) {
  return value(to_upper(r, as_text(r, in.self)));
}
value lower_case(rendering& r, const arguments& in) {
  return value(to_lower(r, as_text(r, in.self)));
}
value capitalize(rendering& r, const arguments& in) {
  return value(capitalized(r, as_text(r, in.self)));
}

/// Words begin behind white space, a hyphen or an opening bracket: other than str.title.
value title(rendering& r, const arguments& in) {
  const auto text = as_text(r, in.self);
  text_sink out(r);
  bool begins = true;
  r.step(4 * text.size());
  for (size_t at = 0; at < text.size() && r.ok();) {
    const char32_t c = next_point(text, at);
    out.append(encode(begins ? upper(c) : lower(c)));
    begins = is_space(c) || (c < 0x80 && std::string_view("-([{<").find(char(c)) != text.npos);
  }
  return value(out.view());
}

value replace(rendering& r, const arguments& in) {
  const int64_t most = in.has(2) && !in.bound[2]->is(kind::none)
                           ? whole_argument(r, in, 2, -1, "replace's count")
                           : -1;
  return replaced(r, as_text(r, in.self), as_text(r, *in.bound[0]), as_text(r, *in.bound[1]), most);
}

value indent(rendering& r, const arguments& in) {
  std::string_view by;
  if (in.has(0) && in.bound[0]->is_text()) {
    by = in.bound[0]->text;
  } else {
    const int64_t width = whole_argument(r, in, 0, 4, "indent's width");
    if (width > limits::template_width_max) return r.fail("indent: width is too large");
    text_sink blanks(r);
    blanks.append(size_t(std::max<int64_t>(width, 0)), ' ');
    by = blanks.view();
  }
  const bool first = in.flag(1, false), blank = in.flag(2, false);
  if (!in.self.is_text()) return r.fail("indent of {}", type_name(in.self));
  const auto text = in.self.text;
  text_sink out(r);
  if (first) out.append(by);
  // A line end at the end of the text opens one more, empty line.
  const auto lines = elements(r, lines_of(r, value(r.join(text, "\n")).text, false));
  for (size_t i = 0; i < lines.size() && r.ok(); ++i) {
    if (i != 0) out.append('\n');
    if (i != 0 && (blank || !lines[i].text.empty())) out.append(by);
    out.append(lines[i].text);
  }
  return value(out.view());
}

value escape(rendering& r, const arguments& in) {
  const auto text = as_text(r, in.self);
  text_sink out(r);
  for (size_t at = 0; at < text.size() && r.ok();) {
    const size_t end = std::min(text.find_first_of("&<>'\"", at), text.size());
    out.append(text.substr(at, end - at));
    at = end + 1;
    if (end == text.size()) break;
    const char c = text[end];
    out.append(c == '&'   ? "&amp;"
               : c == '<' ? "&lt;"
               : c == '>' ? "&gt;"
               : c == '"' ? "&#34;"
                          : "&#39;");
  }
  return value(out.view());
}

value format(rendering& r, const arguments& in) {
  if (!in.rest.empty() && !in.named.empty()) return r.fail("format takes one kind of arguments");
  dictionary* d = r.make_dictionary();
  for (const auto& [name, v] : in.named) r.put(*d, value(name), v);
  const value all = make_list(r, in.rest);
  const value with = in.named.empty() ? value(kind::tuple, all.items) : value(d);
  return format_percent(r, as_text(r, in.self), with);
}

value wordcount(rendering& r, const arguments& in) {
  const auto text = as_text(r, in.self);
  int64_t count = 0;
  bool inside = false;
  r.step(4 * text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_point(text, at);
    const bool word = c == '_' || is_letter(c) || is_digit(c);
    count += word && !inside;
    inside = word;
  }
  return value(count);
}

value truncate(rendering& r, const arguments& in) {
  if (in.self.is_number() || in.self.is(kind::none)) {
    return r.fail("truncate of {}", type_name(in.self));
  }
  const auto text = as_text(r, in.self);
  const int64_t size = whole_argument(r, in, 0, 255, "truncate's length");
  const auto end = text_argument(r, in, 2, "...", "truncate's end");
  const int64_t leeway = whole_argument(r, in, 3, 5, "truncate's leeway");
  r.step(text.size());
  const auto points = int64_t(point_count(text)), shown = size - int64_t(point_count(end));
  if (shown < 0 || leeway < 0) return r.fail("truncate: its length is below its end's");
  if (!in.self.is_text() && !in.self.is_undefined()) {  // parts are counted, and none cut off
    const auto parts = int64_t(elements(r, in.self).size());
    return parts - size <= leeway ? in.self : r.fail("truncate of {}", type_name(in.self));
  }
  if (!r.ok() || points - size <= leeway) return value(text);
  auto kept = text.substr(0, point_offset(text, size_t(shown)));
  // Back to the last blank, so that no word is cut.
  if (!in.flag(1, false)) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  return value(r.join(r.keep(kept), end));
}

/// `keeps` stands beside the plain characters; in a query a blank is a plus.
void append_url(text_sink& to, std::string_view text, std::string_view keeps, bool query) {
  for (const char c : text) {
    if (query && c == ' ') {
      to.append('+');
      continue;
    }
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != text.npos || keeps.find(c) != text.npos;
    if (plain) {
      to.append(c);
    } else {
      to.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)));
    }
  }
}

value urlencode(rendering& r, const arguments& in) {
  text_sink out(r);
  if (!in.self.is(kind::dict) && !in.self.is_sequence()) {
    const auto text = as_text(r, in.self);
    if (r.step(64 * text.size())) append_url(out, text, "/", false);
    return value(out.view());
  }
  const value pairs = in.self.is(kind::dict) ? invoke(r, *find_filter("items"), in) : in.self;
  bool first = true;
  for (const value& pair : elements(r, pairs)) {
    const auto two = elements(r, pair);
    if (two.size() != 2) return r.fail("urlencode of something else than pairs");
    if (!std::exchange(first, false)) out.append('&');
    append_url(out, as_text(r, two[0]), "", true);
    out.append('=');
    append_url(out, as_text(r, two[1]), "", true);
    if (!r.ok()) break;
  }
  return value(out.view());
}

value center(rendering& r, const arguments& in) {
  return padded(r, as_text(r, in.self), whole_argument(r, in, 0, 80, "center's width"), " ",
                side::middle);
}

value wordwrap(rendering& r, const arguments& in) {
  wrapping how{.width = whole_argument(r, in, 0, 79, "wordwrap's width"),
               .breaks_words = in.flag(1, true),
               .breaks_at_hyphens = in.flag(3, true)};
  if (how.width < 1) return r.fail("wordwrap: its width is below 1");
  const bool named = in.has(2) && !in.bound[2]->is(kind::none);
  const auto between = named ? text_argument(r, in, 2, {}, "wordwrap's wrapstring") : "\n";
  if (!in.self.is_text()) return r.fail("wordwrap of {}", type_name(in.self));
  text_sink out(r);
  bool first = true;
  for (const value& line : elements(r, lines_of(r, in.self.text, false))) {
    if (!std::exchange(first, false)) out.append(between);
    append_wrapped(r, out, line.text, how, between);
    if (!r.ok()) break;
  }
  return value(out.view());
}

}  // namespace

builtins text_filters() {
  static constexpr builtin rows[] = {
      {"tojson", tojson, "ensure_ascii indent separators sort_keys"},
      {"string", string, ""},
      {"safe", string, ""},
      {"trim", trim, "chars"},
      {"upper", upper_case, ""},
      {"lower", lower_case, ""},
      {"capitalize", capitalize, ""},
      {"title", title, ""},
      {"replace", replace, "old new count", 2},
      {"indent", indent, "width first blank"},
      {"escape", escape, ""},
      {"e", escape, ""},
      {"forceescape", escape, ""},
      {"format", format, "*"},
      {"wordcount", wordcount, ""},
      {"truncate", truncate, "length killwords end leeway"},
      {"urlencode", urlencode, ""},
      {"center", center, "width"},
      {"wordwrap", wordwrap, "width break_long_words wrapstring break_on_hyphens"},
  };
  return rows;
}

}  // namespace lethe::jinja
