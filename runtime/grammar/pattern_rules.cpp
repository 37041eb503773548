#include "runtime/grammar/pattern_rules.hpp"

#include "runtime/base/utf8.hpp"

namespace lethe {

namespace {

using expr = grammar_builder::expr;

/// Recursion is bounded by grammar_nesting_max.
class pattern_parser {
 public:
  pattern_parser(std::string_view text, grammar_builder& b, const character_form& form, bool search)
      : text_(text), b_(b), form_(form), search_(search) {}

  result<expr> parse() {
    auto whole = outermost();
    if (!wrong() && at_ < text_.size()) refuse("this ) closes nothing");
    if (why_) return *why_;
    if (b_.failed()) return b_.why();
    return whole;
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  char now() const { return done() ? char(0) : text_[at_]; }
  bool wrong() const { return why_.has_value() || b_.failed(); }
  expr refuse(const char* what) {
    if (!why_) why_ = fail("pattern, byte {}: {}", at_, what);
    return {};
  }
  bool took(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  expr any_text() { return b_.repeat(form_({b_.memory(), {{0, codepoint_set::last}}}), 0); }

  /// Here ^ and $ may stand; where they don't, and a match is searched for, anything may.
  expr outermost() {
    std::pmr::vector<expr> all(b_.memory());
    do {
      std::pmr::vector<expr> parts(b_.memory());
      if (!took("^") && search_) parts.push_back(any_text());
      parts.push_back(row(0));
      bool ends = took("$");
      if (!ends && search_) parts.push_back(any_text());
      if (ends && !done() && now() != '|') refuse("$ is supported at the end only");
      all.push_back(b_.sequence(parts));
    } while (!wrong() && took("|"));
    return b_.either(all);
  }

  expr alternatives(uint32_t depth) {
    std::pmr::vector<expr> all(b_.memory());
    do {
      all.push_back(row(depth));
    } while (!wrong() && took("|"));
    return b_.either(all);
  }

  expr row(uint32_t depth) {
    std::pmr::vector<expr> parts(b_.memory());
    while (!done() && !wrong() && now() != '|' && now() != ')') {
      if (now() == '$' && depth == 0) break;
      parts.push_back(item(depth));
      while (!wrong() && repeated(parts.back())) {
      }
    }
    return b_.sequence(parts);
  }

  expr item(uint32_t depth) {
    char c = now();
    if (c == '(') return group(depth);
    if (took("[")) return form_(character_class());
    if (c == '^' || c == '$') return refuse("^ and $ are supported at the ends only");
    if (c == '*' || c == '+' || c == '?') return refuse("there is nothing to repeat");
    if (took(".")) {
      codepoint_set lines(b_.memory(), {{'\n', '\n'}, {'\r', '\r'}});
      return form_(lines.inverse());
    }
    codepoint_set one(b_.memory());
    if (took("\\"))
      escape(one);
    else
      add(one, character());
    return wrong() ? expr{} : form_(one);
  }

  expr group(uint32_t depth) {
    if (depth == limits::grammar_nesting_max) return refuse("groups are nested too deep");
    bool plain = took("(?:") || (!text_.substr(at_).starts_with("(?") && took("("));
    if (!plain) return refuse("look-around, names and flags of groups are not supported");
    auto inside = alternatives(depth + 1);
    if (!wrong() && !took(")")) refuse("a ( is not closed");
    return inside;
  }

  void add(codepoint_set& set, uint32_t c) { set.add(c, c); }

  codepoint_set character_class() {
    codepoint_set set(b_.memory());
    bool inverse = took("^");
    while (!wrong() && !took("]")) {
      if (done()) return refuse("a [ is not closed"), set;
      codepoint_set low(b_.memory());
      class_item(low);
      auto single = [](const codepoint_set& s) {
        return s.ranges().size() == 1 && s.ranges()[0].low == s.ranges()[0].high;
      };
      bool range = now() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (range && single(low)) {
        ++at_;
        codepoint_set high(b_.memory());
        class_item(high);
        if (wrong()) break;
        if (!single(high) || high.ranges()[0].low < low.ranges()[0].low)
          return refuse("a range in [ ] is wrong"), set;
        set.add(low.ranges()[0].low, high.ranges()[0].low);
      } else {
        set.add(low);
      }
      if (!b_.work(set.ranges().size() + 1)) break;
    }
    return inverse ? set.inverse() : set;
  }

  void class_item(codepoint_set& into) {
    if (took("\\")) return escape(into);
    add(into, character());
  }

  uint32_t character() {
    if (done()) return refuse("it ends too early"), 0;
    auto c = utf8::at(text_, at_);
    if (c.state != utf8::sequence_state::whole) refuse("this is no UTF-8");
    at_ += c.length;
    return c.code;
  }

  static bool is_word(uint32_t c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }

  void escape(codepoint_set& into) {
    uint32_t c = character();
    auto* m = b_.memory();
    codepoint_set digit(m, {{'0', '9'}}), space(m, {{'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}});
    codepoint_set word(m, {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
    constexpr std::string_view from = "nrtfv0", to = "\n\r\t\f\v";
    if (wrong()) return;
    if (c == 'd' || c == 'D') return into.add(c == 'd' ? digit : digit.inverse());
    if (c == 's' || c == 'S') return into.add(c == 's' ? space : space.inverse());
    if (c == 'w' || c == 'W') return into.add(c == 'w' ? word : word.inverse());
    if (c == 'x' || c == 'u') return hex(into, c == 'x' ? 2 : 4);
    if (size_t i = c < 128 ? from.find(char(c)) : from.npos; i != from.npos) {
      uint8_t is = i < to.size() ? uint8_t(to[i]) : uint8_t(0);
      return into.add(is, is);
    }
    if (is_word(c) || c == '_') return void(refuse("this escape is not supported"));
    into.add(c, c);
  }

  void hex(codepoint_set& into, uint32_t digits) {
    uint32_t code = 0;
    for (uint32_t i = 0; i < digits; ++i, ++at_) {
      char c = now();
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0) return void(refuse("an escape wants more hexadecimal digits"));
      code = code << 4 | uint32_t(digit);
    }
    if (code >= 0xD800 && code < 0xE000) return void(refuse("surrogates are no characters"));
    into.add(code, code);
  }

  bool repeated(expr& what) {
    size_t before = at_;
    uint32_t least = 0, most = grammar_builder::no_end;
    if (took("+"))
      least = 1;
    else if (took("?"))
      most = 1;
    else if (!took("*") && !(took("{") && braces(least, most)))
      return at_ = before, false;
    if (most < least) return refuse("a repetition is upside down"), false;
    if (least > limits::grammar_repeat_max ||
        (most != grammar_builder::no_end && most > limits::grammar_repeat_max))
      return refuse("a repetition is too large"), false;
    took("?");
    what = b_.repeat(what, least, most);
    return true;
  }

  /// Behind a brace that means a repetition; any other is itself.
  bool braces(uint32_t& least, uint32_t& most) {
    if (!number(least)) return false;
    most = least;
    if (took(",")) {
      most = grammar_builder::no_end;
      if (now() != '}' && !number(most)) return false;
    }
    return took("}");
  }

  bool number(uint32_t& into) {
    size_t begin = at_;
    for (into = 0; now() >= '0' && now() <= '9' && at_ < begin + 9; ++at_)
      into = into * 10 + uint32_t(now() - '0');
    return at_ > begin;
  }

  std::string_view text_;
  grammar_builder& b_;
  const character_form& form_;
  bool search_;
  size_t at_ = 0;
  std::optional<error> why_;
};

}  // namespace

result<expr> parse_pattern(std::string_view pattern, grammar_builder& b, const character_form& form,
                           bool search) {
  if (pattern.size() > limits::grammar_bytes_max)
    return fail("pattern: {} bytes; at most {} are read", pattern.size(),
                limits::grammar_bytes_max);
  return pattern_parser(pattern, b, form, search).parse();
}

result<grammar> pattern_grammar(std::string_view pattern, std::pmr::memory_resource* memory) {
  grammar_builder b(memory);
  character_form form = [&b](const codepoint_set& set) { return b.character(set); };
  uint32_t root = b.add_rule("the pattern");
  auto body = parse_pattern(pattern, b, form, false);
  if (!body) return body.why();
  b.define(root, *body);
  return b.build(root);
}

}  // namespace lethe
