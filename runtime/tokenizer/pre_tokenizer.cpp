#include "runtime/tokenizer/pre_tokenizer.hpp"

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/byte_level.hpp"
#include "runtime/tokenizer/unicode.hpp"

namespace lethe::pre_tokenizers {
namespace {

/// Takes what matched and what lies between, in order, and writes the pieces that remain.
class segments {
 public:
  segments(behavior how, bool invert, piece whole, std::pmr::vector<piece>& out)
      : how_(how), invert_(invert), whole_(whole), out_(out) {}

  void add(size_t begin, size_t end, bool matched) {
    matched ^= invert_;
    switch (how_) {
      case behavior::removed:
        if (!matched) write(begin, end);
        break;
      case behavior::isolated:
        write(begin, end);
        break;
      case behavior::contiguous:
        (any_ && matched == last_matched_) ? extend(begin, end) : write(begin, end);
        break;
      case behavior::merged_with_previous:
        (any_ && matched && !last_matched_) ? extend(begin, end) : write(begin, end);
        break;
      case behavior::merged_with_next:
        (any_ && !matched && last_matched_) ? extend(begin, end) : write(begin, end);
        break;
    }
    any_ = true;
    last_matched_ = matched;
  }

 private:
  void write(size_t begin, size_t end) {
    written_ = begin < end;
    if (!written_) return;
    out_.push_back(
        {uint32_t(whole_.begin + begin), uint32_t(whole_.begin + end), whole_.first && begin == 0});
  }
  void extend(size_t begin, size_t end) {
    if (written_)
      out_.back().end = uint32_t(whole_.begin + end);
    else
      write(begin, end);
  }

  behavior how_;
  bool invert_;
  piece whole_;
  std::pmr::vector<piece>& out_;
  bool any_ = false, last_matched_ = false;
  bool written_ = false;  // the last segment: an empty one is not
};

bool is(characters what, char32_t c) {
  switch (what) {
    case characters::white_space:
      return unicode::is_white_space(c);
    case characters::number:
      return unicode::is_number(c);
    case characters::punctuation:
      break;
  }
  bool ascii = (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
  return ascii || unicode::is_punctuation(c);
}

result<void> cut(const split& how, std::string_view text, segments& out, match_session& s) {
  size_t last = 0, from = 0;
  while (from <= text.size()) {
    match m = how.what.find(text, from, s);
    if (m.state == match::gave_up) return pattern_gave_up();
    if (m.state == match::none) break;
    bool empty = m.begin == m.end;
    if (!empty || m.begin != last) {  // nothing may match right after a match
      if (m.begin > last) out.add(last, m.begin, false);
      out.add(m.begin, m.end, true);
      last = m.end;
    }
    from = m.end;
    if (empty) from += from < text.size() ? utf8::at(text, from).length : 1;
  }
  if (last < text.size()) out.add(last, text.size(), false);
  return {};
}

void cut(const split_characters& how, std::string_view text, segments& out) {
  size_t last = 0;
  for (size_t i = 0; i < text.size();) {
    auto s = utf8::at(text, i);
    if (is(how.what, s.code)) {
      if (i > last) out.add(last, i, false);
      out.add(i, i + s.length, true);
      last = i + s.length;
    }
    i += s.length;
  }
  if (last < text.size()) out.add(last, text.size(), false);
}

using cuts = std::pmr::vector<piece>;

result<void> run(const split& how, pieces& p, match_session& s) {
  cuts next(p.cuts.get_allocator());
  next.reserve(p.cuts.size() + p.text.size() / 5);
  for (piece whole : p.cuts) {
    segments out(how.how, how.invert, whole, next);
    auto done = cut(how, p.at(whole), out, s);
    if (!done) return done;
  }
  p.cuts.swap(next);
  return {};
}

result<void> run(const split_characters& how, pieces& p, match_session&) {
  cuts next(p.cuts.get_allocator());
  next.reserve(p.cuts.size());
  for (piece whole : p.cuts) {
    segments out(how.how, false, whole, next);
    cut(how, p.at(whole), out);
  }
  p.cuts.swap(next);
  return {};
}

// Writes the text anew, piece by piece; the cuts move with it.
template <class Write>
result<void> rewrite(pieces& p, Write write) {
  std::pmr::string next(p.text.get_allocator());
  next.reserve(p.text.size() + p.text.size() / 4 + 16);
  for (piece& cut : p.cuts) {
    auto begin = uint32_t(next.size());
    write(p.at(cut), cut.first, next);
    cut = {begin, uint32_t(next.size()), cut.first};
  }
  p.text.swap(next);
  return {};
}

result<void> run(const prefix_space&, pieces& p, match_session&) {
  return rewrite(p, [](std::string_view in, bool, std::pmr::string& out) {
    if (!in.starts_with(' ')) out.push_back(' ');
    out.append(in);
  });
}

result<void> run(const byte_characters&, pieces& p, match_session&) {
  return rewrite(p, [](std::string_view in, bool, std::pmr::string& out) {
    byte_level::append_characters(in, out);
  });
}

result<void> run(const metaspace& m, pieces& p, match_session&) {
  return rewrite(p, [&m](std::string_view in, bool first, std::pmr::string& out) {
    bool wanted =
        m.scheme == prepend_scheme::always || (m.scheme == prepend_scheme::first && first);
    if (wanted && !in.starts_with(' ') && !in.starts_with(m.replacement)) out += m.replacement;
    for (char c : in) {
      if (c == ' ')
        out += m.replacement;
      else
        out.push_back(c);
    }
  });
}

}  // namespace

result<void> apply(std::span<const any> all, pieces& p, match_session& s) {
  for (const any& one : all) {
    auto done = std::visit([&](auto& step) { return run(step, p, s); }, one);
    if (!done) return done;
  }
  return {};
}

}  // namespace lethe::pre_tokenizers
