#include "runtime/tokenizer/oniguruma.hpp"

#include <algorithm>

namespace lethe {
namespace {

// PCRE2's \w lacks marks and connectors, its \s has U+180E, and its \h is not a hex digit.
constexpr std::string_view word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view hex_digit = "0-9a-fA-F";
constexpr std::string_view any_character = "(?s:.)";
constexpr uint32_t sets_deep_max = 16;

bool is_hex(char c) { return std::isxdigit(uint8_t(c)) != 0; }

/// What matches one character: a set of PCRE2 where that can say it.
struct one_of {
  std::string expression;
  std::string members;  // where this is "[members]", which a set around it can take in
};

/// What stands between two && of a set.
struct operand {
  std::string members, others;  // others: alternatives that no [] can hold, each behind a |
  bool open_range = true;       // a "-" here would begin a range

  std::string expression() const {
    if (others.empty()) return "[" + members + "]";
    if (members.empty()) return "(?:" + others.substr(1) + ")";
    return "(?:[" + members + "]" + others + ")";
  }
  bool empty() const { return members.empty() && others.empty(); }
  void add_members(std::string_view text) {
    members += text;
    open_range = false;
  }
  void add_other(std::string_view expression) {
    others.append("|").append(expression);
    open_range = false;
  }
};

struct rewriter {
  std::string_view in;
  std::string out = {};
  size_t i = 0;
  uint32_t depth = 0;

  bool at(std::string_view text) const { return in.substr(i).starts_with(text); }
  result<void> escape();
  void option();
  result<one_of> set();
  result<void> member(operand& to);
  result<void> member_escape(operand& to);
  void hyphen(operand& to);
  bool code_point(std::string& to);
};

// \uHHHH, which PCRE2 lacks.
bool rewriter::code_point(std::string& to) {
  if (!at("\\u") || in.size() - i < 6) return false;
  std::string_view digits = in.substr(i + 2, 4);
  if (!std::ranges::all_of(digits, is_hex)) return false;
  to.append("\\x{").append(digits).append("}");
  i += 6;
  return true;
}

result<void> rewriter::escape() {
  if (i + 1 == in.size()) return fail("a backslash ends the pattern");
  if (code_point(out)) return {};
  char c = in[i + 1];
  i += 2;
  auto put = [this](std::string_view before, std::string_view set, std::string_view after) {
    out.append(before).append(set).append(after);
  };
  switch (c) {
    case 's':
      return put("", R"(\p{White_Space})", ""), result<void>();
    case 'S':
      return put("", R"(\P{White_Space})", ""), result<void>();
    case 'w':
      return put("[", word, "]"), result<void>();
    case 'W':
      return put("[^", word, "]"), result<void>();
    case 'h':
      return put("[", hex_digit, "]"), result<void>();
    case 'H':
      return put("[^", hex_digit, "]"), result<void>();
    case 'v':
      return put("", R"(\x0B)", ""), result<void>();
    case 'b':
    case 'B': {
      std::string w = "[" + std::string(word) + "]";
      std::string same = c == 'b' ? "!" : "=", other = c == 'b' ? "=" : "!";
      out += "(?:(?<=" + w + ")(?" + same + w + ")|(?<!" + w + ")(?" + other + w + "))";
      return {};
    }
    default:
      out += '\\', out += c;
  }
  return {};
}

// In Ruby's syntax, which tokenizer.json is read in, "m" lets the dot match a line feed.
void rewriter::option() {
  size_t end = in.find_first_not_of("imx-", i + 2);
  bool options = end != in.npos && end > i + 2 && (in[end] == ':' || in[end] == ')');
  if (!options) end = i + 2;
  std::string flags(in.substr(i, end - i));
  std::ranges::replace(flags, 'm', 's');
  out += flags;
  i = end;
}

result<void> rewriter::member_escape(operand& to) {
  if (i + 1 == in.size()) return fail("a backslash ends the pattern");
  std::string code;
  if (code_point(code)) {
    to.members += code;
    to.open_range = true;
    return {};
  }
  char c = in[i + 1];
  if (c == 'p' || c == 'P') {
    size_t end = at("\\p{") || at("\\P{") ? in.find('}', i) : i + 2;
    if (end >= in.size()) return fail("\\{} without its name", c);
    to.add_members(in.substr(i, end + 1 - i));
    i = end + 1;
    return {};
  }
  i += 2;
  switch (c) {
    case 's':
      return to.add_members(R"(\p{White_Space})"), result<void>();
    case 'S':
      return to.add_members(R"(\P{White_Space})"), result<void>();
    case 'd':
    case 'D':
      return to.add_members(c == 'd' ? R"(\d)" : R"(\D)"), result<void>();
    case 'w':
      return to.add_members(word), result<void>();
    case 'W':
      return to.add_other("[^" + std::string(word) + "]"), result<void>();
    case 'h':
      return to.add_members(hex_digit), result<void>();
    case 'H':
      return to.add_other("[^" + std::string(hex_digit) + "]"), result<void>();
    case 'v':
      to.members += R"(\x0B)";
      break;
    default:
      to.members += '\\', to.members += c;
  }
  to.open_range = true;
  return {};
}

// A "-" that begins no range is a member; PCRE2 wants that said.
void rewriter::hyphen(operand& to) {
  std::string_view rest = in.substr(i + 1);
  bool into_class = rest.size() > 1 && rest[0] == '\\' &&
                    std::string_view("sSdDwWhHpP").find(rest[1]) != rest.npos;
  bool range = to.open_range && !to.members.empty() && !into_class && !rest.starts_with(']') &&
               !rest.starts_with('[') && !rest.starts_with("&&");
  to.members += range ? "-" : "\\-";
  to.open_range = false;
  if (!range || rest.empty() || rest[0] == '\\') return;
  do to.members += in[++i];  // the range's other end, whole
  while (i + 1 < in.size() && (uint8_t(in[i + 1]) & 0xC0) == 0x80);
}

result<void> rewriter::member(operand& to) {
  if (in[i] == '\\') return member_escape(to);
  if (at("[:")) {
    size_t end = in.find(":]", i);
    if (end == in.npos) return fail("[: without :]");
    to.add_members(in.substr(i, end + 2 - i));
    i = end + 2;
    return {};
  }
  if (in[i] == '[') {
    auto inner = set();
    if (!inner) return inner.why();
    inner->members.empty() ? to.add_other(inner->expression) : to.add_members(inner->members);
    return {};
  }
  if (in[i] == '-') {
    hyphen(to);
  } else {
    if (in[i] == ']' || in[i] == '^') to.members += '\\';
    to.members += in[i];
    to.open_range = true;
  }
  i++;
  return {};
}

// From "[" to its "]". Sets in sets and && become alternatives and looks ahead at one character.
result<one_of> rewriter::set() {
  if (++depth > sets_deep_max) return fail("sets nested deeper than {}", sets_deep_max);
  bool negated = in.substr(++i).starts_with('^');
  if (negated) i++;
  operand now;
  std::string before;  // operands that ended with &&
  bool first = true;
  for (; i < in.size() && (in[i] != ']' || first); first = false) {
    if (at("&&")) {
      if (now.empty()) return fail("a set with nothing before &&");
      before += "(?=" + now.expression() + ")";
      now = {};
      i += 2;
      continue;
    }
    auto done = member(now);
    if (!done) return done.why();
  }
  if (i == in.size()) return fail("a set without its ]");
  if (now.empty()) return fail("a set with nothing in it");
  i++, depth--;
  if (before.empty() && now.others.empty()) {
    if (negated) return one_of{"[^" + now.members + "]", ""};
    return one_of{now.expression(), now.members};
  }
  std::string all = before + "(?=" + now.expression() + ")";
  if (negated) all = "(?!" + all + ")";
  return one_of{"(?:" + all + std::string(any_character) + ")", ""};
}

}  // namespace

result<std::string> pcre2_from_oniguruma(std::string_view expression) {
  rewriter r{expression};
  while (r.i < expression.size()) {
    if (expression[r.i] == '\\') {
      auto done = r.escape();
      if (!done) return done.why();
    } else if (expression[r.i] == '[') {
      auto set = r.set();
      if (!set) return set.why();
      r.out += set->expression;
    } else if (r.at("(?")) {
      r.option();
    } else if (r.at("{,")) {
      r.out += "{0,";
      r.i += 2;
    } else {
      r.out += expression[r.i++];
    }
  }
  return std::move(r.out);
}

}  // namespace lethe
