#include "runtime/tokenizer/pre_tokenizer.hpp"

#include <algorithm>

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/byte_level.hpp"
#include "runtime/tokenizer/unicode.hpp"

namespace lethe::pre_tokenizers {
namespace {

constexpr size_t at_once_max = 512;

/// Takes what matched and what lies between, in order, and passes on the pieces that remain; one
/// that may be merged with the next when it is known where it ends.
template <class Next>
class segments {
 public:
  segments(behavior how, bool invert, Next next) : how_(how), invert_(invert), next_(next) {}

  /// False: what comes next gave up.
  bool add(size_t begin, size_t end, bool matched) {
    matched ^= invert_;
    bool follows = any_, after_match = last_matched_;
    any_ = true;
    last_matched_ = matched;
    switch (how_) {
      case behavior::removed:
        return matched || begin == end || next_(begin, end);
      case behavior::isolated:
        return begin == end || next_(begin, end);
      case behavior::contiguous:
        return follows && matched == after_match ? extend(begin, end) : write(begin, end);
      case behavior::merged_with_previous:
        return follows && matched && !after_match ? extend(begin, end) : write(begin, end);
      case behavior::merged_with_next:
        return follows && !matched && after_match ? extend(begin, end) : write(begin, end);
    }
    return true;
  }
  bool finish() { return begin_ == end_ || next_(begin_, end_); }

 private:
  bool write(size_t begin, size_t end) {
    bool passed = finish();
    begin_ = begin;
    end_ = end;
    return passed;
  }
  bool extend(size_t begin, size_t end) {
    if (begin_ == end_) return write(begin, end);
    end_ = end;
    return true;
  }

  behavior how_;
  bool invert_;
  Next next_;
  bool any_ = false, last_matched_ = false;
  size_t begin_ = 0, end_ = 0;  // the last one; an empty one is none
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

template <class Segments>
bool cut_by(const split& how, std::string_view text, Segments& out, match_session& s) {
  size_t last = 0, from = 0;
  while (from <= text.size()) {
    match m = how.what.find(text, from, s);
    if (m.state == match::gave_up) return false;
    if (m.state == match::none) break;
    bool empty = m.begin == m.end;
    if (!empty || m.begin != last) {  // nothing may match right after a match
      if (m.begin > last && !out.add(last, m.begin, false)) return false;
      if (!out.add(m.begin, m.end, true)) return false;
      last = m.end;
    }
    from = m.end;
    if (empty) from += from < text.size() ? utf8::at(text, from).length : 1;
  }
  return last == text.size() || out.add(last, text.size(), false);
}

template <class Segments>
bool cut_by(const split_characters& how, std::string_view text, Segments& out) {
  size_t last = 0;
  for (size_t i = 0; i < text.size();) {
    auto s = utf8::at(text, i);
    if (is(how.what, s.code)) {
      if (i > last && !out.add(last, i, false)) return false;
      if (!out.add(i, i + s.length, true)) return false;
      last = i + s.length;
    }
    i += s.length;
  }
  return last == text.size() || out.add(last, text.size(), false);
}

}  // namespace

cutter::cutter(std::span<const any> steps, match_session& s, taker& to, size_t bytes,
               std::pmr::memory_resource* memory)
    : steps_(steps), session_(s), to_(to), queues_(memory) {
  queues_.reserve(steps.size() + 1);
  for (size_t i = 0; i <= steps.size(); i++)
    queues_.emplace_back(std::clamp<size_t>(bytes, 1, at_once_max), memory);
}

result<void> cutter::cut(std::string_view text, bool first) {
  if (!push(0, {text, first}) || !flush(0)) return pattern_gave_up();
  return {};
}

inline bool cutter::push(size_t step, piece p) {
  auto& to = queues_[step];
  to.pieces[to.count++] = p;
  return to.count < to.pieces.size() || flush(step);
}

bool cutter::flush(size_t step) {
  auto& q = queues_[step];
  if (step == steps_.size()) {
    match_session::pause joining(session_);
    to_.take(std::span(q.pieces).first(q.count));
  } else {
    bool passed = std::visit([&](const auto& how) { return run(how, step); }, steps_[step]);
    if (!passed || !flush(step + 1)) return false;  // what comes next may lie in our text
  }
  q.count = 0;
  return true;
}

template <class Cut>
bool cutter::cut_each(size_t step, behavior how, bool invert, Cut cut) {
  const auto& from = queues_[step];
  for (size_t i = 0; i < from.count; i++) {
    const piece p = from.pieces[i];
    auto next = [&](size_t begin, size_t end) {
      return push(step + 1, {p.text.substr(begin, end - begin), p.first && begin == 0});
    };
    segments out(how, invert, next);
    if (!cut(p.text, out) || !out.finish()) return false;
  }
  return true;
}

bool cutter::run(const split& how, size_t step) {
  return cut_each(step, how.how, how.invert, [&](std::string_view text, auto& out) {
    return cut_by(how, text, out, session_);
  });
}

bool cutter::run(const split_characters& how, size_t step) {
  return cut_each(step, how.how, false,
                  [&](std::string_view text, auto& out) { return cut_by(how, text, out); });
}

template <class Write>
void cutter::rewrite(size_t step, size_t for_each_byte, Write write) {
  const auto& from = queues_[step];
  auto& to = queues_[step + 1];
  size_t bytes = 0;
  for (size_t i = 0; i < from.count; i++) bytes += (from.pieces[i].text.size() + 1) * for_each_byte;
  if (to.text.size() < bytes) to.text.resize(bytes);
  char* at = to.text.data();
  for (size_t i = 0; i < from.count; i++) {
    const piece p = from.pieces[i];
    char* end = write(p, at);
    to.pieces[i] = {std::string_view(at, end), p.first};
    at = end;
  }
  to.count = from.count;
}

bool cutter::run(const prefix_space&, size_t step) {
  rewrite(step, 1, [](piece p, char* to) {
    if (!p.text.starts_with(' ')) *to++ = ' ';
    return std::ranges::copy(p.text, to).out;
  });
  return true;
}

bool cutter::run(const byte_characters&, size_t step) {
  rewrite(step, 2, [](piece p, char* to) { return byte_level::write_characters(p.text, to); });
  return true;
}

bool cutter::run(const metaspace& how, size_t step) {
  const std::string& space = how.replacement;
  rewrite(step, std::max<size_t>(space.size(), 1), [&](piece p, char* to) {
    bool wanted =
        how.scheme == prepend_scheme::always || (how.scheme == prepend_scheme::first && p.first);
    if (wanted && !p.text.starts_with(' ') && !p.text.starts_with(space))
      to = std::ranges::copy(space, to).out;
    for (char c : p.text) {
      if (c == ' ')
        to = std::ranges::copy(space, to).out;
      else
        *to++ = c;
    }
    return to;
  });
  return true;
}

}  // namespace lethe::pre_tokenizers
