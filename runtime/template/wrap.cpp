#include "runtime/template/wrap.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/template/unicode.hpp"

namespace lethe::jinja {
namespace {

using points = std::pmr::vector<char32_t>;

bool is_blank(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_word(char32_t c) { return c == '_' || is_letter(c) || is_digit(c); }
/// A letter as a hyphen may stand between: no digit.
bool is_part(char32_t c) { return c == '_' || is_letter(c); }
bool ends_word(char32_t c) {
  return is_word(c) ||
         (c < 0x80 && std::string_view("!\"'&.,?").find(char(c)) != std::string_view::npos);
}

/// The rows of blanks and the words of a line, in Python's reading of dashes.
class chunks {
 public:
  chunks(const points& line, bool hyphens) : line_(line), hyphens_(hyphens) {}

  /// Where the chunk that begins at `from` ends.
  size_t end_of(size_t from) const {
    if (is_blank(at(from))) {
      while (from < line_.size() && is_blank(at(from))) ++from;
      return from;
    }
    if (hyphens_ && from > 0 && ends_word(at(from - 1)) && dashes_before_word(from)) {
      while (at(from) == '-') ++from;
      return from;
    }
    size_t end = from + 1;
    while (end < line_.size() && !is_blank(at(end)) && !(hyphens_ && breaks_at(from, end))) ++end;
    return end;
  }

 private:
  char32_t at(size_t i) const { return i < line_.size() ? line_[i] : U' '; }
  bool dashes_before_word(size_t i) const {
    const size_t from = i;
    while (at(i) == '-') ++i;
    return i >= from + 2 && is_word(at(i));
  }
  /// "well-known" behind its hyphen, "so--then" before its dash.
  bool breaks_at(size_t from, size_t end) const {
    if (ends_word(at(end - 1)) && dashes_before_word(end)) return true;
    if (at(end - 1) != '-' || end < from + 2) return false;
    const auto part = [&](size_t back) { return end >= back && is_part(at(end - back)); };
    const bool behind = part(2) && (part(3) || (end >= 4 && at(end - 3) == '-' && part(4)));
    return behind && is_part(at(end)) && is_part(at(end + (at(end + 1) == '-' ? 2 : 1)));
  }

  const points& line_;
  bool hyphens_;
};

struct chunk {
  size_t from, end;
};

/// How much of a word that is longer than a line fits into `room`: to a hyphen, if there is one.
size_t broken(const points& line, chunk c, size_t room, const wrapping& how) {
  if (!how.breaks_at_hyphens || c.end - c.from <= room) return room;
  size_t hyphen = room;
  while (hyphen > 0 && line[c.from + hyphen - 1] != '-') --hyphen;
  const auto other = [](char32_t p) { return p != '-'; };
  const auto begin = line.begin() + int64_t(c.from);
  return hyphen > 1 && std::any_of(begin, begin + int64_t(hyphen - 1), other) ? hyphen : room;
}

}  // namespace

void append_wrapped(rendering& r, text_sink& to, std::string_view text, const wrapping& how,
                    std::string_view between) {
  points line(r.memory());
  std::pmr::vector<chunk> row(r.memory());
  if (!r.take(24 * text.size()) || !r.step(16 * text.size())) return;
  for (size_t at = 0; at < text.size();) line.push_back(next_point(text, at));
  const chunks all(line, how.breaks_at_hyphens);
  const auto width = size_t(how.width);
  bool first = true;
  chunk rest{0, 0};
  const auto blank = [&](chunk c) {
    return std::all_of(line.begin() + int64_t(c.from), line.begin() + int64_t(c.end), is_space);
  };
  while (rest.end < line.size() || rest.from < rest.end) {
    row.clear();
    size_t used = 0;
    for (;;) {
      if (rest.from == rest.end) {
        if (rest.end == line.size()) break;
        rest = {rest.end, all.end_of(rest.end)};
      }
      if (row.empty() && !first && blank(rest)) {  // no line but the first begins with blanks
        rest.from = rest.end;
        continue;
      }
      if (used + rest.end - rest.from > width) break;
      row.push_back(rest);
      used += rest.end - rest.from;
      rest.from = rest.end;
    }
    const size_t size = rest.end - rest.from;
    if (size > width && (how.breaks_words || row.empty())) {
      const size_t room = width - used,
                   part = how.breaks_words ? broken(line, rest, room, how) : size;
      row.push_back({rest.from, rest.from + part});  // an empty part, too, guards a blank before it
      rest.from += part;
    }
    if (!row.empty() && blank(row.back())) row.pop_back();
    if (row.empty()) continue;
    if (!std::exchange(first, false)) to.append(between);
    for (const chunk c : row)
      for (size_t i = c.from; i < c.end; ++i) to.append(encode(line[i]));
    if (!r.ok()) return;
  }
}

}  // namespace lethe::jinja
