#include "runtime/tokenizer/word_scanner.hpp"

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/pattern.hpp"
#include "runtime/tokenizer/split_patterns.hpp"

namespace lethe {
namespace {

#define ANY_CASE R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)"
#define REST R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
constexpr std::string_view llama3_json = ANY_CASE R"(\p{N}{1,3})" REST;
constexpr std::string_view qwen2_json = ANY_CASE R"(\p{N})" REST;
#undef ANY_CASE
#undef REST

/// Of the planes that have letters, numbers and spaces.
std::string every_character() {
  std::string all;
  for (char32_t c = 0; c < 0x40000; c++)
    if (c < 0xD800 || c >= 0xE000) utf8::append(all, c);
  return all;
}

bool same_letter(char c, char small, bool any_case) {
  return c == small || (any_case && c == small - 32);
}

}  // namespace

std::optional<word_scanner> word_scanner::of(std::string_view expression) {
  auto named = [expression](std::string_view family) {
    return expression == split_patterns::find(family)->patterns[0];
  };
  auto made = [](rules r) {
    std::optional<word_scanner> scanner = word_scanner(r);
    if (!scanner->mark_all()) scanner.reset();
    return scanner;
  };
  if (expression == split_patterns::gpt2) return made({.spaced_numbers = true});
  bool json3 = expression == llama3_json, json1 = expression == qwen2_json;
  bool three = json3 || named("llama3");
  if (!three && !json1 && !named("qwen2")) return {};
  return made({.newlines = true,
               .any_case = true,
               .long_s = json3 || json1,
               .numbers = three ? 3u : 1u,
               .any_before_letters = true});
}

bool word_scanner::mark_all() {
  std::string all = every_character();
  std::string_view to_spaces = std::string_view(all).substr(0, all.find("\u3001"));
  bool whole = mark(all, R"(\p{L}+)", kind::letter) && mark(all, R"(\p{N}+)", kind::number) &&
               mark(to_spaces, R"(\s+)", kind::space);  // U+3000 is the last
  if (rules_.newlines) kinds_['\r'] = kinds_['\n'] = kind::newline;
  return whole;
}

/// As PCRE2 sees them: its Unicode may be older or newer than ours. False if it gives up.
bool word_scanner::mark(std::string_view all, std::string_view expression, kind k) {
  auto p = pattern::regex(expression);
  if (!p) return false;
  match_session session(all.size(), std::pmr::get_default_resource());
  match m;
  while ((m = p->find(all, m.end, session)).state == match::found)
    for (size_t i = m.begin; i < m.end;) {
      auto s = utf8::at(all, i);
      if (s.code >= kinds_.size()) kinds_.resize(s.code + 1, kind::other);
      kinds_[s.code] = k;
      i += s.length;
    }
  return m.state == match::none;
}

inline word_scanner::character word_scanner::at(std::string_view text, size_t i) const noexcept {
  auto first = uint8_t(text[i]);
  if (first < 0x80) return {kinds_[first], 1};
  if (first < 0xE0 && text.size() - i > 1)
    return {kinds_[(first & 31u) << 6 | (text[i + 1] & 63u)], 2};
  if (first < 0xF0 && text.size() - i > 2) {
    auto code = (first & 15u) << 12 | (text[i + 1] & 63u) << 6 | (text[i + 2] & 63u);
    return {kinds_[code], 3};
  }
  auto s = utf8::any_at(text, i);
  return {s.code < kinds_.size() ? kinds_[s.code] : kind::other, s.length};
}

inline size_t word_scanner::past(kind k, std::string_view text, size_t i) const noexcept {
  while (i < text.size()) {
    character c = at(text, i);
    if (c.is != k) break;
    i += c.length;
  }
  return i;
}

size_t word_scanner::past_numbers(std::string_view text, size_t i) const noexcept {
  for (uint32_t n = 0; n < rules_.numbers && i < text.size(); n++) {
    character c = at(text, i);
    if (c.is != kind::number) break;
    i += c.length;
  }
  return i;
}

size_t word_scanner::past_others(std::string_view text, size_t i) const noexcept {
  i = past(kind::other, text, i);
  return rules_.newlines ? past(kind::newline, text, i) : i;
}

/// To the last newline; without one all, or all but the last if a word follows.
size_t word_scanner::past_spaces(std::string_view text, size_t begin) const noexcept {
  size_t i = begin, last = begin, after_newline = begin;
  while (i < text.size()) {
    character c = at(text, i);
    if (c.is != kind::space && c.is != kind::newline) break;
    last = i;
    i += c.length;
    if (c.is == kind::newline) after_newline = i;
  }
  if (after_newline > begin) return after_newline;
  return i < text.size() && last > begin ? last : i;
}

/// Past one that begins at `i`, or 0.
size_t word_scanner::contraction(std::string_view text, size_t i) const noexcept {
  text = text.substr(i, 3);
  if (text.size() < 2 || text[0] != '\'') return 0;
  auto is = [this, text](size_t at, char small) {
    return same_letter(text[at], small, rules_.any_case);
  };
  if (is(1, 's') || is(1, 't') || is(1, 'm') || is(1, 'd')) return i + 2;
  if (text.size() < 3) return 0;
  if (rules_.long_s && text.substr(1) == "\u017F") return i + 3;
  if (is(2, 'e')) return is(1, 'r') || is(1, 'v') ? i + 3 : 0;
  return is(1, 'l') && is(2, 'l') ? i + 3 : 0;
}

/// Whether a first character goes with the word behind it.
bool word_scanner::led(kind first, bool space, kind next) const noexcept {
  switch (next) {
    case kind::letter:
      return space || (rules_.any_before_letters && (first == kind::other || first == kind::space));
    case kind::number:
      return space && rules_.spaced_numbers;
    case kind::other:
      return space;
    default:
      return false;
  }
}

size_t word_scanner::end(std::string_view text, size_t from) const noexcept {
  character first = at(text, from);
  if (text[from] == '\'')
    if (size_t end = contraction(text, from)) return end;
  size_t i = from + first.length;
  if (first.is == kind::letter) return past(kind::letter, text, i);
  if (first.is == kind::number) return past_numbers(text, from);
  kind next = i < text.size() ? at(text, i).is : kind::newline;
  if (led(first.is, text[from] == ' ', next)) {
    if (next == kind::letter) return past(kind::letter, text, i);
    return next == kind::number ? past_numbers(text, i) : past_others(text, i);
  }
  return first.is == kind::other ? past_others(text, i) : past_spaces(text, from);
}

}  // namespace lethe
