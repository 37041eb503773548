#include "runtime/template/words.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/template/builtin.hpp"
#include "runtime/template/unicode.hpp"

namespace lethe::jinja {
namespace {

void append_upper(text_sink& to, char32_t c) {
  // The one letter of living use whose upper case is two points.
  if (c == 0xDF) return to.append("SS");
  to.append(encode(upper(c)));
}

template <class Change>
std::string_view changed(rendering& r, std::string_view text, Change&& change) {
  text_sink out(r);
  if (!r.step(4 * text.size())) return {};
  for (size_t at = 0; at < text.size() && r.ok();) change(out, next_point(text, at));
  return out.view();
}

bool is_mark(char32_t c, std::string_view marks) {
  for (size_t at = 0; at < marks.size();) {
    if (next_point(marks, at) == c) return true;
  }
  return false;
}

size_t point_before(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (text[at] & 0xC0) == 0x80);
  return at;
}

/// An empty part stands before every point and at the end.
value interleaved(rendering& r, std::string_view text, std::string_view with, int64_t count) {
  text_sink out(r);
  size_t at = 0;
  for (; count != 0 && r.ok(); --count) {
    out.append(with);
    if (at == text.size()) break;
    const size_t from = at;
    next_point(text, at);
    out.append(text.substr(from, at - from));
  }
  out.append(text.substr(at));
  return value(out.view());
}

}  // namespace

std::string_view to_upper(rendering& r, std::string_view text) {
  return changed(r, text, [](text_sink& out, char32_t c) { append_upper(out, c); });
}

std::string_view to_lower(rendering& r, std::string_view text) {
  return changed(r, text, [](text_sink& out, char32_t c) { out.append(encode(lower(c))); });
}

std::string_view capitalized(rendering& r, std::string_view text) {
  return changed(r, text, [first = true](text_sink& out, char32_t c) mutable {
    out.append(encode(first ? upper(c) : lower(c)));
    first = false;
  });
}

std::string_view stripped(rendering& r, std::string_view text, const value& marks, bool left,
                          bool right) {
  const bool blank = !marks.is_text();
  const auto drops = [&](char32_t c) {
    if (blank) return is_space(c);
    return r.step(marks.text.size()) && is_mark(c, marks.text);
  };
  r.step(text.size());
  size_t from = 0, to = text.size();
  while (left && from < to) {
    size_t next = from;
    if (!drops(next_point(text, next))) break;
    from = next;
  }
  while (right && to > from) {
    size_t last = point_before(text, to), at = last;
    if (!drops(next_point(text, at))) break;
    to = last;
  }
  return text.substr(from, to - from);
}

size_t find_part(rendering& r, std::string_view text, std::string_view part, size_t from) {
  if (from > text.size() || !r.step(part.size())) return text.npos;
  if (part.empty()) return from;
  if (part.size() > text.size() - from) return text.npos;
  const auto* at = static_cast<const char*>(
      memmem(text.data() + from, text.size() - from, part.data(), part.size()));
  const size_t found = at ? size_t(at - text.data()) : text.npos;
  r.step(at ? found - from : text.size() - from);
  return found;
}

size_t find_last_part(rendering& r, std::string_view text, std::string_view part) {
  // The plain search compares the part at every place, 16 bytes at a time.
  const size_t compares = 1 + part.size() / 16;
  if (!r.step() || text.size() > SIZE_MAX / compares) return text.npos;
  const size_t bound = text.size() * compares;
  if (compares > 4 && !r.step(bound)) return text.npos;
  const size_t found = text.rfind(part);
  r.step(found == text.npos ? text.size() : text.size() - found);
  return found;
}

value replaced(rendering& r, std::string_view text, std::string_view from, std::string_view to,
               int64_t count) {
  if (from.empty()) return interleaved(r, text, to, count);
  text_sink out(r);
  size_t at = 0;
  for (; count != 0 && r.ok(); --count) {
    const size_t found = find_part(r, text, from, at);
    if (found == text.npos) break;
    out.append(text.substr(at, found - at));
    out.append(to);
    at = found + from.size();
  }
  out.append(text.substr(at));
  return value(out.view());
}

value lines_of(rendering& r, std::string_view text, bool keep_ends) {
  sequence* lines = r.make_sequence();
  size_t start = 0;
  for (size_t at = 0; at < text.size() && r.ok();) {
    const size_t end = at;
    const char32_t c = next_point(text, at);
    if (!is_line_end(c)) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    r.step(at - start);
    r.push(*lines, value(text.substr(start, (keep_ends ? at : end) - start)));
    start = at;
  }
  r.step(text.size() - start);
  if (start < text.size()) r.push(*lines, value(text.substr(start)));
  return r.list_of(lines);
}

value padded(rendering& r, std::string_view text, int64_t width, std::string_view fill,
             side where) {
  if (width > limits::template_width_max) {
    return r.fail("a width above {}", limits::template_width_max);
  }
  r.step(text.size());
  const auto size = int64_t(point_count(text));
  const int64_t missing = std::max<int64_t>(width - size, 0);
  // Python puts the odd one to the left where the width is odd.
  const int64_t middle = missing / 2 + (missing & width & 1);
  const int64_t before = where == side::left ? 0 : where == side::right ? missing : middle;
  text_sink out(r);
  for (int64_t i = 0; i < before; ++i) out.append(fill);
  out.append(text);
  for (int64_t i = before; i < missing; ++i) out.append(fill);
  return value(out.view());
}

}  // namespace lethe::jinja
