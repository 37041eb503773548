#include "runtime/tokenizer/normalizer.hpp"

#include <algorithm>

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/byte_level.hpp"

namespace lethe::normalizers {
namespace {

// What a call of `apply` hands to each step: the text so far, and where to write the next.
struct step {
  std::string_view in;
  std::pmr::string& out;
  match_session& session;
};

constexpr size_t text_bytes_max = size_t{1} << 30;  // 32 bits address what is made of a text

error too_long() {
  return fail("tokenizer: the normalized text is longer than {} bytes", text_bytes_max);
}

template <class Visit>
void each_character(std::string_view text, Visit visit) {
  for (size_t i = 0; i < text.size();) {
    auto s = utf8::at(text, i);
    visit(s.code);
    i += s.length;
  }
}

result<void> run(const unicode::form& f, step s) {
  unicode::normalize(s.in, f, s.out);
  return {};
}

result<void> run(const lowercase&, step s) {
  each_character(s.in, [&](char32_t c) { unicode::append_lower(c, s.out); });
  return {};
}

result<void> run(const strip& how, step s) {
  size_t at = 0, begin = s.in.size(), end = 0;  // of what is not white space
  each_character(s.in, [&](char32_t c) {
    size_t next = at + utf8::at(s.in, at).length;
    if (!unicode::is_white_space(c)) begin = std::min(begin, at), end = next;
    at = next;
  });
  if (!how.left && (end > 0 || !how.right)) begin = 0;
  if (!how.right && (end > 0 || !how.left)) end = s.in.size();
  if (begin < end) s.out.append(s.in.substr(begin, end - begin));
  return {};
}

result<void> run(const strip_accents&, step s) {
  each_character(s.in, [&](char32_t c) {
    if (!unicode::is_mark(c)) utf8::append(s.out, c);
  });
  return {};
}

result<void> run(const prepend& p, step s) {
  if (!s.in.empty()) s.out.append(p.text);
  s.out.append(s.in);
  return {};
}

result<void> run(const replace& r, step s) {
  size_t copied = 0, from = 0;
  while (from <= s.in.size()) {
    match m = r.what.find(s.in, from, s.session);
    if (m.state == match::gave_up) return pattern_gave_up();
    if (m.state == match::none) break;
    s.out.append(s.in.substr(copied, m.begin - copied));
    s.out.append(r.with);
    if (s.out.size() > text_bytes_max) return too_long();
    copied = m.end;
    from = m.end;
    if (m.begin == m.end) from += from < s.in.size() ? utf8::at(s.in, from).length : 1;
  }
  s.out.append(s.in.substr(copied));
  return {};
}

result<void> run(const charsmap& map, step s) {
  map.apply(s.in, s.out);
  return {};
}

// SentencePiece's "nmt" rules: drop controls, make odd spaces plain.
result<void> run(const nmt&, step s) {
  each_character(s.in, [&](char32_t c) {
    bool dropped = (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
                   c == 0x8F || c == 0x9F;
    bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                 (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                 c == 0xFEFF || c == 0xFFFD;
    if (!dropped) utf8::append(s.out, space ? U' ' : c);
  });
  return {};
}

result<void> run(const byte_level&, step s) {
  size_t had = s.out.size();
  s.out.resize(had + 2 * s.in.size());
  char* end = lethe::byte_level::write_characters(s.in, s.out.data() + had);
  s.out.resize(size_t(end - s.out.data()));
  return {};
}

// The blocks that BERT calls Chinese: each of their characters is a word.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void append_cleaned(const bert& b, char32_t c, std::pmr::string& out) {
  if (b.clean_text) {
    bool kept = c == '\t' || c == '\n' || c == '\r';  // controls, but blanks as well
    if (c == 0 || c == 0xFFFD || (!kept && unicode::is_other(c))) return;
    if (unicode::is_white_space(c)) c = ' ';
  }
  bool alone = b.chinese_chars && is_chinese(c);
  if (alone) out.push_back(' ');
  utf8::append(out, c);
  if (alone) out.push_back(' ');
}

result<void> run(const bert& b, step s) {
  std::pmr::string now(s.out.get_allocator().resource());
  each_character(s.in, [&](char32_t c) { append_cleaned(b, c, now); });
  if (b.strip_accents) {
    std::pmr::string apart(s.out.get_allocator().resource());
    unicode::normalize(now, unicode::form::nfd, apart);
    now.clear();
    each_character(apart, [&](char32_t c) {
      if (!unicode::is_nonspacing_mark(c)) utf8::append(now, c);
    });
  }
  each_character(now, [&](char32_t c) {
    if (b.lowercase)
      unicode::append_lower(c, s.out);
    else
      utf8::append(s.out, c);
  });
  return {};
}

}  // namespace

result<void> apply(std::span<const any> all, std::pmr::string& text, match_session& session) {
  std::pmr::string next(text.get_allocator().resource());
  for (const any& one : all) {
    next.clear();
    auto done = std::visit([&](auto& n) { return run(n, {text, next, session}); }, one);
    if (!done) return done;
    if (next.size() > text_bytes_max) return too_long();
    text.swap(next);
  }
  return {};
}

}  // namespace lethe::normalizers
