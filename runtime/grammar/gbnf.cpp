#include "runtime/grammar/gbnf.hpp"

#include <map>

#include "runtime/base/utf8.hpp"
#include "runtime/grammar/builder.hpp"

namespace lethe {

namespace {

using expr = grammar_builder::expr;

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Recursion is bounded by grammar_nesting_max.
class gbnf_parser {
 public:
  gbnf_parser(std::string_view text, std::pmr::memory_resource* memory)
      : text_(text), builder_(memory), rules_(memory) {}

  result<grammar> parse() {
    skip();
    while (!done() && !wrong()) rule();
    if (!wrong() && !rules_.contains("root"))
      builder_.fail_with(fail("grammar: there is no rule `root`; it says what an answer is"));
    for (const auto& [name, r] : rules_)
      if (!wrong() && !builder_.is_defined(r.id)) refuse(r.first_use, "`{}` is not defined", name);
    if (wrong()) return builder_.why();
    auto made = builder_.build(rules_.find("root")->second.id);
    if (!made) return fail("grammar: {}", made.why().text);
    return made;
  }

 private:
  struct named {
    uint32_t id;
    size_t first_use;
  };

  bool done() const { return at_ >= text_.size(); }
  char now() const { return done() ? char(0) : text_[at_]; }
  bool wrong() const { return builder_.failed(); }

  template <class... Args>
  expr refuse(size_t at, fmt::format_string<Args...> format, Args&&... args) {
    size_t line = 1, column = 1;
    for (char c : text_.substr(0, at)) {
      column = c == '\n' ? 1 : column + 1;
      line += c == '\n';
    }
    builder_.fail_with(
        fail("grammar {}:{}: {}", line, column, fmt::format(format, std::forward<Args>(args)...)));
    return {};
  }

  void skip() {
    for (; !done(); ++at_) {
      if (now() == '#')
        while (!done() && now() != '\n') ++at_;
      if (done() || !(now() == ' ' || now() == '\t' || now() == '\n' || now() == '\r')) return;
    }
  }

  bool took(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  std::string_view name() {
    size_t begin = at_;
    while (in_name(now())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  uint32_t rule_named(std::string_view called, size_t at) {
    std::pmr::string key(called, builder_.memory());
    auto found = rules_.find(key);
    if (found != rules_.end()) return found->second.id;
    uint32_t id = builder_.add_rule(fmt::format("rule `{}`", called));
    rules_.emplace(std::move(key), named{id, at});
    return id;
  }

  void rule() {
    size_t at = at_;
    auto called = name();
    if (called.empty()) return void(refuse(at, "here should be a rule, as: name ::= ..."));
    skip();
    if (!took("::=")) return void(refuse(at_, "after `{}` there should be ::=", called));
    uint32_t id = rule_named(called, at);
    if (wrong()) return;
    if (builder_.is_defined(id)) return void(refuse(at, "`{}` is defined twice", called));
    builder_.define(id, {});
    auto body = alternatives(0);
    if (wrong()) return;
    builder_.define(id, body);
    if (!done() && now() == ')') refuse(at_, "this ) closes nothing");
  }

  /// Whether a rule begins here: a name and ::=.
  bool at_rule() {
    size_t before = at_;
    bool is = !name().empty();
    skip();
    is = is && text_.substr(at_).starts_with("::=");
    at_ = before;
    return is;
  }

  expr alternatives(uint32_t depth) {
    std::pmr::vector<expr> all(builder_.memory());
    do {
      skip();
      all.push_back(one_alternative(depth));
    } while (!wrong() && took("|"));
    return builder_.either(all);
  }

  expr one_alternative(uint32_t depth) {
    std::pmr::vector<expr> parts(builder_.memory());
    while (!done() && !wrong() && now() != '|' && now() != ')') {
      if (in_name(now()) && at_rule()) break;
      parts.push_back(item(depth));
      skip();
      while (!wrong() && repeated(parts.back())) skip();
    }
    return builder_.sequence(parts);
  }

  expr item(uint32_t depth) {
    size_t at = at_;
    if (in_name(now())) {
      auto called = name();
      return builder_.call(rule_named(called, at));
    }
    if (took("\"")) return literal(at);
    if (took("[")) return character_class(at);
    if (took("(")) return group(at, depth);
    if (took(".")) return builder_.character({builder_.memory(), {{0, codepoint_set::last}}});
    return refuse(at, "here should be a name, \"literal\", [class], . or ( group )");
  }

  expr group(size_t at, uint32_t depth) {
    if (depth == limits::grammar_nesting_max)
      return refuse(at, "more than {} groups inside each other", limits::grammar_nesting_max);
    auto inside = alternatives(depth + 1);
    if (!wrong() && !took(")")) return refuse(at, "this ( is not closed");
    return inside;
  }

  expr literal(size_t at) {
    std::pmr::string bytes(builder_.memory());
    while (!wrong() && !took("\"")) {
      if (done() || now() == '\n') return refuse(at, "this literal is not closed");
      utf8::append(bytes, char32_t(character()));
    }
    return builder_.literal(bytes);
  }

  expr character_class(size_t at) {
    codepoint_set set(builder_.memory());
    bool inverse = took("^");
    while (!wrong() && !took("]")) {
      if (done() || now() == '\n') return refuse(at, "this [ is not closed");
      size_t here = at_;
      uint32_t low = character(), high = low;
      if (now() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        high = character();
      }
      if (high < low) return refuse(here, "this range is upside down");
      if (!builder_.work(set.ranges().size() + 1)) return {};
      set.add(low, high);
    }
    return builder_.character(inverse ? set.inverse() : set);
  }

  uint32_t character() {
    size_t at = at_;
    if (took("\\")) return escape(at);
    auto c = utf8::at(text_, at_);
    if (c.state != utf8::sequence_state::whole) refuse(at, "this is no UTF-8");
    at_ += c.length;
    return c.code;
  }

  uint32_t escape(size_t at) {
    char c = now();
    ++at_;
    if (c == 'x') return hex(at, 2);
    if (c == 'u') return hex(at, 4);
    if (c == 'U') return hex(at, 8);
    constexpr std::string_view from = "nrt\\\"'[]-^/", to = "\n\r\t\\\"'[]-^/";
    size_t i = from.find(c);
    if (c == 0 || i == from.npos)
      return refuse(at, "unknown escape; known are \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH"), 0;
    return uint8_t(to[i]);
  }

  uint32_t hex(size_t at, size_t digits) {
    uint32_t code = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      int digit = hex_digit(now());
      if (digit < 0) return refuse(at, "this escape needs {} hexadecimal digits", digits), 0;
      code = code << 4 | uint32_t(digit);
    }
    if (code > codepoint_set::last || (code >= 0xD800 && code < 0xE000))
      return refuse(at, "this is no character"), 0;
    return code;
  }

  /// A repetition behind `what`; false where there is none.
  bool repeated(expr& what) {
    size_t at = at_;
    if (took("*")) return what = builder_.repeat(what, 0), true;
    if (took("+")) return what = builder_.repeat(what, 1), true;
    if (took("?")) return what = builder_.maybe(what), true;
    if (!took("{")) return false;
    uint32_t least = 0, most = grammar_builder::no_end;
    skip();
    bool good = number(least);
    most = least;
    if (good && took(",")) {
      most = grammar_builder::no_end;
      skip();
      if (now() != '}') good = number(most);
    }
    if (!good || !took("}")) return refuse(at, "a repetition is {{n}}, {{n,}} or {{m,n}}"), false;
    if (most < least) return refuse(at, "this repetition is upside down"), false;
    if (least > limits::grammar_repeat_max ||
        (most != grammar_builder::no_end && most > limits::grammar_repeat_max))
      return refuse(at, "at most {} repetitions", limits::grammar_repeat_max), false;
    what = builder_.repeat(what, least, most);
    return true;
  }

  bool number(uint32_t& into) {
    size_t begin = at_;
    for (into = 0; now() >= '0' && now() <= '9' && at_ < begin + 9; ++at_)
      into = into * 10 + uint32_t(now() - '0');
    bool any = at_ > begin;
    skip();
    return any;
  }

  std::string_view text_;
  size_t at_ = 0;
  grammar_builder builder_;
  std::pmr::map<std::pmr::string, named, std::less<>> rules_;
};

}  // namespace

result<grammar> parse_gbnf(std::string_view text, std::pmr::memory_resource* memory) {
  if (text.size() > limits::grammar_bytes_max)
    return fail("grammar: {} bytes; at most {} are read", text.size(), limits::grammar_bytes_max);
  return gbnf_parser(text, memory).parse();
}

}  // namespace lethe
