#include "runtime/tokenizer/oniguruma.hpp"

namespace lethe {
namespace {

// PCRE2's \w lacks marks and connectors, its \s has U+180E, and its \h is not a hex digit.
constexpr std::string_view word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view hex_digit = "0-9a-fA-F";

struct rewriter {
  std::string_view in;
  std::string out = {};
  size_t i = 0;
  bool in_class = false;

  void put_set(std::string_view members, bool negated) {
    if (!in_class) out += negated ? "[^" : "[";
    out += members;
    if (!in_class) out += "]";
  }
  result<void> escape();
  result<void> class_member();
  void open_class();
};

result<void> rewriter::escape() {
  if (i + 1 == in.size()) return fail("a backslash ends the pattern");
  char c = in[i + 1];
  i += 2;
  if (in_class && (c == 'W' || c == 'H')) return fail("\\{} inside [] is not supported", c);
  switch (c) {
    case 's':
      out += R"(\p{White_Space})";
      break;
    case 'S':
      out += R"(\P{White_Space})";
      break;
    case 'w':
      put_set(word, false);
      break;
    case 'W':
      put_set(word, true);
      break;
    case 'h':
      put_set(hex_digit, false);
      break;
    case 'H':
      put_set(hex_digit, true);
      break;
    default:
      out += '\\', out += c;
  }
  return {};
}

void rewriter::open_class() {
  in_class = true;
  out += in[i++];
  if (i < in.size() && in[i] == '^') out += in[i++];
  if (i < in.size() && in[i] == ']') out += in[i++];  // a member when it comes first
}

result<void> rewriter::class_member() {
  if (in.substr(i).starts_with("[:")) {
    size_t end = in.find(":]", i);
    if (end == in.npos) return fail("[: without :]");
    out += in.substr(i, end + 2 - i);
    i = end + 2;
    return {};
  }
  if (in[i] == '[') return fail("a set inside a set ([a[b]]) is not supported");
  if (in.substr(i).starts_with("&&")) return fail("intersection of sets (&&) is not supported");
  if (in[i] == ']') in_class = false;
  out += in[i++];
  return {};
}

}  // namespace

result<std::string> pcre2_from_oniguruma(std::string_view expression) {
  rewriter r{expression};
  while (r.i < expression.size()) {
    result<void> step;
    if (expression[r.i] == '\\') {
      step = r.escape();
    } else if (r.in_class) {
      step = r.class_member();
    } else if (expression[r.i] == '[') {
      r.open_class();
    } else {
      r.out += expression[r.i++];
    }
    if (!step) return step.why();
  }
  return std::move(r.out);
}

}  // namespace lethe
