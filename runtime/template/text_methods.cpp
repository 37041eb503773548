#include <algorithm>
#include <utility>

#include "runtime/template/builtin.hpp"
#include "runtime/template/formatting.hpp"
#include "runtime/template/unicode.hpp"
#include "runtime/template/words.hpp"

namespace lethe::jinja {
namespace {

value strip_marks(rendering& r, const arguments& in, bool left, bool right) {
  if (in.has(0) && !in.bound[0]->is_text() && !in.bound[0]->is(kind::none)) {
    return r.fail("strip takes a string, not {}", type_name(*in.bound[0]));
  }
  return value(stripped(r, in.self.text, in.at(0), left, right));
}
value strip(rendering& r, const arguments& in) { return strip_marks(r, in, true, true); }
value lstrip(rendering& r, const arguments& in) { return strip_marks(r, in, true, false); }
value rstrip(rendering& r, const arguments& in) { return strip_marks(r, in, false, true); }

/// Words between white space; the last part keeps the rest when `most` is reached.
void split_blank(rendering& r, std::string_view text, int64_t most, sequence& to) {
  const value blank;
  text = stripped(r, text, blank, true, false);
  while (!text.empty() && r.ok()) {
    if (most-- == 0) return r.push(to, value(text));
    size_t at = 0, end = 0;
    while (at < text.size()) {
      end = at;
      if (is_space(next_point(text, at))) break;
      end = at;
    }
    r.push(to, value(text.substr(0, end)));
    r.step(end);
    while (at < text.size()) {
      size_t next = at;
      if (!is_space(next_point(text, next))) break;
      at = next;
    }
    text.remove_prefix(at);
  }
}

void split_blank_right(rendering& r, std::string_view text, int64_t most, sequence& to) {
  const value blank;
  text = stripped(r, text, blank, false, true);
  while (!text.empty() && r.ok()) {
    if (most-- == 0) return r.push(to, value(text));
    size_t start = text.size();
    while (start > 0) {
      size_t last = start - 1;
      while (last > 0 && (text[last] & 0xC0) == 0x80) --last;
      size_t at = last;
      if (is_space(next_point(text, at))) break;
      start = last;
    }
    r.push(to, value(text.substr(start)));
    r.step(text.size() - start);
    size_t end = start;
    while (end > 0) {
      size_t last = end - 1;
      while (last > 0 && (text[last] & 0xC0) == 0x80) --last;
      size_t at = last;
      if (!is_space(next_point(text, at))) break;
      end = last;
    }
    text = text.substr(0, end);
  }
}

void split_at(rendering& r, std::string_view text, std::string_view by, int64_t most,
              sequence& to) {
  size_t at = 0;
  for (; most != 0 && r.ok(); --most) {
    const size_t found = find_part(r, text, by, at);
    if (found == text.npos) break;
    r.push(to, value(text.substr(at, found - at)));
    at = found + by.size();
  }
  r.push(to, value(text.substr(at)));
}

void split_at_right(rendering& r, std::string_view text, std::string_view by, int64_t most,
                    sequence& to) {
  for (; most != 0 && r.ok(); --most) {
    const size_t found = find_last_part(r, text, by);
    if (found == text.npos) break;
    r.push(to, value(text.substr(found + by.size())));
    text = text.substr(0, found);
  }
  r.push(to, value(text));
}

value split_sides(rendering& r, const arguments& in, bool right) {
  sequence* parts = r.make_sequence();
  const int64_t most = whole_argument(r, in, 1, -1, "maxsplit");
  const bool blank = !in.has(0) || in.bound[0]->is(kind::none);
  const auto by = blank ? std::string_view() : text_argument(r, in, 0, {}, "split's separator");
  if (!r.ok()) return {};
  if (!blank && by.empty()) return r.fail("split with an empty separator");
  if (right && most >= 0) {
    blank ? split_blank_right(r, in.self.text, most, *parts)
          : split_at_right(r, in.self.text, by, most, *parts);
    std::ranges::reverse(parts->items);
  } else {
    blank ? split_blank(r, in.self.text, most, *parts)
          : split_at(r, in.self.text, by, most, *parts);
  }
  return r.list_of(parts);
}
value split(rendering& r, const arguments& in) { return split_sides(r, in, false); }
value rsplit(rendering& r, const arguments& in) { return split_sides(r, in, true); }

value partition(rendering& r, const arguments& in) {
  const auto text = in.self.text, by = text_argument(r, in, 0, {}, "partition's separator");
  if (by.empty()) return r.fail("partition with an empty separator");
  const size_t at = find_part(r, text, by, 0);
  const value none{std::string_view()};
  if (at == text.npos) return make_tuple(r, {in.self, none, none});
  return make_tuple(r, {value(text.substr(0, at)), value(by), value(text.substr(at + by.size()))});
}

value rpartition(rendering& r, const arguments& in) {
  const auto text = in.self.text, by = text_argument(r, in, 0, {}, "partition's separator");
  if (by.empty()) return r.fail("rpartition with an empty separator");
  const size_t at = find_last_part(r, text, by);
  const value none{std::string_view()};
  if (at == text.npos) return make_tuple(r, {none, none, in.self});
  return make_tuple(r, {value(text.substr(0, at)), value(by), value(text.substr(at + by.size()))});
}

value splitlines(rendering& r, const arguments& in) {
  return lines_of(r, in.self.text, in.flag(0, false));
}

/// The part of the text between the bounds in arguments 1 and 2, and where it starts.
std::string_view between(rendering& r, const arguments& in, size_t& from) {
  const auto text = in.self.text;
  r.step(text.size());
  if (!in.has(1) && !in.has(2)) return text;
  const auto size = int64_t(point_count(text));
  const auto bound = [&](size_t i, int64_t otherwise) {
    if (!in.has(i) || in.bound[i]->is(kind::none)) return otherwise;
    const int64_t at = whole_argument(r, in, i, otherwise, "a bound");
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size + 1);
  };
  const int64_t first = bound(1, 0), last = std::max(first, std::min(bound(2, size), size));
  from = size_t(first);
  const size_t start = point_offset(text, size_t(first));
  if (first > size) return {};
  return text.substr(start, point_offset(text.substr(start), size_t(last - first)));
}

/// True where any of the given parts (one, or a tuple) fits.
template <class Fits>
value any_part(rendering& r, const arguments& in, std::string_view what, Fits&& fits) {
  size_t from = 0;
  const auto text = between(r, in, from);
  const value& given = *in.bound[0];
  const std::span<const value> parts =
      given.is(kind::tuple) ? elements(r, given) : std::span<const value>(&given, 1);
  for (const value& part : parts) {
    if (!part.is_text()) return r.fail("{} of {}", what, type_name(part));
    if (r.step(part.text.size()) && fits(text, part.text)) return value(true);
  }
  return value(false);
}
value startswith(rendering& r, const arguments& in) {
  return any_part(r, in, "startswith", [](auto t, auto p) { return t.starts_with(p); });
}
value endswith(rendering& r, const arguments& in) {
  return any_part(r, in, "endswith", [](auto t, auto p) { return t.ends_with(p); });
}

value find(rendering& r, const arguments& in) {
  size_t from = 0;
  const auto text = between(r, in, from);
  const auto part = text_argument(r, in, 0, {}, "the part to find");
  const size_t at = r.ok() ? find_part(r, text, part, 0) : text.npos;
  if (at == text.npos || (text.empty() && from > point_count(in.self.text)))
    return value(int64_t{-1});
  return value(int64_t(from + point_count(text.substr(0, at))));
}

value rfind(rendering& r, const arguments& in) {
  size_t from = 0;
  const auto text = between(r, in, from);
  const auto part = text_argument(r, in, 0, {}, "the part to find");
  const size_t at = find_last_part(r, text, part);
  if (at == text.npos) return value(int64_t{-1});
  return value(int64_t(from + point_count(text.substr(0, at))));
}

value index(rendering& r, const arguments& in) {
  const value at = find(r, in);
  return r.ok() && at.whole < 0 ? r.fail("index of a part that the string does not hold") : at;
}

value count(rendering& r, const arguments& in) {
  size_t from = 0;
  const auto text = between(r, in, from);
  const auto part = text_argument(r, in, 0, {}, "the part to count");
  if (part.empty()) return value(int64_t(point_count(text)) + 1);
  int64_t found = 0;
  for (size_t at = 0; r.ok() && (at = find_part(r, text, part, at)) != text.npos; ++found) {
    at += part.size();
  }
  return value(found);
}

value replace(rendering& r, const arguments& in) {
  const auto from = text_argument(r, in, 0, {}, "what to replace");
  const auto to = text_argument(r, in, 1, {}, "the replacement");
  const int64_t most = whole_argument(r, in, 2, -1, "count");
  return r.ok() ? replaced(r, in.self.text, from, to, most) : value();
}

value join(rendering& r, const arguments& in) {
  text_sink out(r);
  bool first = true;
  for (const value& v : elements(r, *in.bound[0])) {
    if (!v.is_text()) return r.fail("join of {}", type_name(v));
    if (!std::exchange(first, false)) out.append(in.self.text);
    out.append(v.text);
    if (!r.ok()) break;
  }
  return value(out.view());
}

value removeprefix(rendering& r, const arguments& in) {
  const auto text = in.self.text, part = text_argument(r, in, 0, {}, "the prefix");
  return value(text.starts_with(part) ? text.substr(part.size()) : text);
}
value removesuffix(rendering& r, const arguments& in) {
  const auto text = in.self.text, part = text_argument(r, in, 0, {}, "the suffix");
  return value(text.ends_with(part) ? text.substr(0, text.size() - part.size()) : text);
}

value pad(rendering& r, const arguments& in, side where) {
  const int64_t width = whole_argument(r, in, 0, 0, "the width");
  const auto fill = text_argument(r, in, 1, " ", "the fill character");
  if (point_count(fill) != 1) return r.fail("the fill character must be one character");
  return padded(r, in.self.text, width, fill, where);
}
value ljust(rendering& r, const arguments& in) { return pad(r, in, side::left); }
value rjust(rendering& r, const arguments& in) { return pad(r, in, side::right); }
value center(rendering& r, const arguments& in) { return pad(r, in, side::middle); }

value zfill(rendering& r, const arguments& in) {
  const auto text = in.self.text;
  const bool sign = text.starts_with('-') || text.starts_with('+');
  const int64_t width = whole_argument(r, in, 0, 0, "the width") - sign;
  const value digits = padded(r, text.substr(sign), width, "0", side::right);
  return r.ok() && sign ? value(r.join(r.keep(text.substr(0, 1)), digits.text)) : digits;
}

value expandtabs(rendering& r, const arguments& in) {
  const int64_t width = whole_argument(r, in, 0, 8, "the tab width");
  if (width > limits::template_width_max) return r.fail("expandtabs: a width above the bound");
  text_sink out(r);
  int64_t column = 0;
  r.step(4 * in.self.text.size());
  for (size_t at = 0; at < in.self.text.size() && r.ok();) {
    const char32_t c = next_point(in.self.text, at);
    const int64_t blanks = c == '\t' && width > 0 ? width - column % width : 0;
    out.append(size_t(blanks), ' ');
    if (c != '\t') out.append(encode(c));
    column = c == '\n' || c == '\r' ? 0 : column + (c == '\t' ? blanks : 1);
  }
  return value(out.view());
}

value format(rendering& r, const arguments& in) { return format_braces(r, in.self.text, in); }

value format_map(rendering& r, const arguments& in) {
  if (!in.bound[0]->is(kind::dict)) return r.fail("format_map of {}", type_name(*in.bound[0]));
  std::pmr::vector<named_value> named(r.memory());
  for (const auto& [key, held] : in.bound[0]->entries->all()) {
    if (key.is_text() && r.take(4 * sizeof held)) named.push_back({key.text, held});
  }
  return format_braces(r, in.self.text, {.named = named});
}

}  // namespace

builtins text_methods() {
  static constexpr builtin rows[] = {
      {"strip", strip, "chars"},
      {"lstrip", lstrip, "chars"},
      {"rstrip", rstrip, "chars"},
      {"split", split, "sep maxsplit"},
      {"rsplit", rsplit, "sep maxsplit"},
      {"partition", partition, "sep", 1},
      {"rpartition", rpartition, "sep", 1},
      {"splitlines", splitlines, "keepends"},
      {"startswith", startswith, "prefix start end", 1},
      {"endswith", endswith, "suffix start end", 1},
      {"find", find, "sub start end", 1},
      {"rfind", rfind, "sub start end", 1},
      {"index", index, "sub start end", 1},
      {"count", count, "sub start end", 1},
      {"replace", replace, "old new count", 2},
      {"join", join, "iterable", 1},
      {"removeprefix", removeprefix, "prefix", 1},
      {"removesuffix", removesuffix, "suffix", 1},
      {"ljust", ljust, "width fillchar", 1},
      {"rjust", rjust, "width fillchar", 1},
      {"center", center, "width fillchar", 1},
      {"zfill", zfill, "width", 1},
      {"expandtabs", expandtabs, "tabsize"},
      {"format", format, "*"},
      {"format_map", format_map, "mapping", 1},
  };
  return rows;
}

}  // namespace lethe::jinja
