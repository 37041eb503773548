#include "runtime/grammar/json_rules.hpp"

#include <fmt/format.h>

#include <iterator>

namespace lethe {

using expr = json_rules::expr;

template <class Make>
expr json_rules::once(std::optional<uint32_t>& rule, const char* name, Make make) {
  if (!rule) {
    rule = b_.add_rule(name);
    if (!b_.failed()) b_.define(*rule, make());
  }
  return b_.failed() ? expr{} : b_.call(*rule);
}

expr json_rules::blank() {
  return once(blank_, "white space", [this] {
    codepoint_set indents(b_.memory(), {{' ', ' '}, {'\t', '\t'}});
    auto indent = b_.repeat(b_.character(indents), 0, 32);
    return b_.maybe(b_.either({b_.literal(" "), b_.sequence({b_.literal("\n"), indent})}));
  });
}

expr json_rules::around(char open, expr parts, char close) {
  return b_.sequence({b_.literal({&open, 1}), blank(), parts, b_.literal({&close, 1})});
}

expr json_rules::then(expr part) {
  auto comma = once(comma_, "a comma", [this] {
    return b_.sequence({blank(), b_.literal(","), blank()});
  });
  return b_.sequence({comma, part});
}

expr json_rules::member(expr key, expr value) {
  auto colon = once(colon_, "a colon", [this] {
    return b_.sequence({blank(), b_.literal(":"), blank()});
  });
  return b_.sequence({key, colon, value});
}

expr json_rules::row(expr part, uint32_t least, uint32_t most) {
  if (most == 0) return {};
  uint32_t more = most == grammar_builder::no_end ? most : most - 1;
  auto some = b_.sequence({part, b_.repeat(then(part), least > 0 ? least - 1 : 0, more), blank()});
  return least == 0 ? b_.maybe(some) : some;
}

expr json_rules::value() {
  return once(value_, "a JSON value", [this] {
    return b_.either({object(), list(), text(), number(), boolean(), null()});
  });
}

expr json_rules::object() {
  return once(object_, "a JSON object", [this] {
    return around('{', row(member(text(), value()), 0, grammar_builder::no_end), '}');
  });
}

expr json_rules::list() {
  return once(list_, "a JSON list",
              [this] { return around('[', row(value(), 0, grammar_builder::no_end), ']'); });
}

expr json_rules::boolean() { return b_.either({b_.literal("true"), b_.literal("false")}); }

expr json_rules::digit(char low, char high) {
  return b_.character({b_.memory(), {{uint8_t(low), uint8_t(high)}}});
}

expr json_rules::integer() {
  auto large = b_.sequence({digit('1', '9'), b_.repeat(digit('0', '9'), 0, 17)});
  return b_.sequence({minus(), b_.either({b_.literal("0"), large})});
}

expr json_rules::magnitude() {
  return once(magnitude_, "a JSON number", [this] {
    auto more = b_.repeat(digit('0', '9'), 0, 17);
    auto whole = b_.either({b_.literal("0"), b_.sequence({digit('1', '9'), more})});
    auto fraction = b_.sequence({b_.literal("."), digits(1)});
    auto e = b_.character({b_.memory(), {{'e', 'e'}, {'E', 'E'}}});
    auto power = [this](uint32_t most) { return b_.repeat(digit('0', '9'), 1, most); };
    auto large = b_.sequence({b_.maybe(b_.literal("+")), power(2)});
    auto exponent = b_.either({large, b_.sequence({b_.literal("-"), power(3)})});
    return b_.sequence({whole, b_.maybe(fraction), b_.maybe(b_.sequence({e, exponent}))});
  });
}

expr json_rules::text_of(expr characters) {
  return b_.sequence({b_.literal("\""), characters, b_.literal("\"")});
}

/// One hexadecimal digit out of ranges, written as pairs of characters.
expr json_rules::hex(const char* ranges) {
  codepoint_set set(b_.memory());
  for (; *ranges; ranges += 2) set.add(uint8_t(ranges[0]), uint8_t(ranges[1]));
  return b_.character(set);
}

/// Behind the backslash. A high surrogate is followed by its low one.
expr json_rules::escape() {
  codepoint_set shorts(b_.memory());
  for (char c : std::string_view("\"\\/bfnrt")) shorts.add(uint8_t(c), uint8_t(c));
  auto any = hex("09afAF"), d = hex("ddDD"), two = b_.sequence({any, any});
  auto low = b_.sequence({b_.literal("\\u"), d, hex("cfCF"), two});
  auto single =
      b_.either({b_.sequence({hex("09acefACEF"), any, two}), b_.sequence({d, hex("07"), two}),
                 b_.sequence({d, hex("89abAB"), two, low})});
  return b_.either({b_.character(shorts), b_.sequence({b_.literal("u"), single})});
}

expr json_rules::text_character() {
  auto made = once(character_, "a character of a JSON text", [this] {
    codepoint_set plain(b_.memory(), {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, codepoint_set::last}});
    return b_.either({b_.character(plain), b_.sequence({b_.literal("\\"), escape()})});
  });
  if (!b_.failed()) b_.takes_one_character(*character_);
  return made;
}

expr json_rules::character(const codepoint_set& set) {
  std::pmr::vector<codepoint_range> key(set.ranges().begin(), set.ranges().end(), b_.memory());
  if (auto known = sets_.find(key); known != sets_.end()) return known->second;
  codepoint_set plain(b_.memory(), {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, codepoint_set::last}});
  std::pmr::vector<expr> forms(b_.memory());
  forms.push_back(b_.character(set.both(plain)));
  for (auto r : set.both(plain.inverse()).ranges())
    for (uint32_t c = r.low; c <= r.high; ++c) {
      char byte = char(c);
      auto quoted = spelled({&byte, 1});
      forms.push_back(b_.literal(std::string_view(quoted)));
    }
  auto made = b_.either(forms);
  if (forms.size() > 1 && !b_.failed()) {
    uint32_t rule = b_.add_rule("a character of a pattern");
    if (b_.failed()) return {};
    b_.define(rule, made);
    if (set.contains(plain_characters)) b_.takes_one_character(rule);
    made = b_.call(rule);
  }
  sets_.emplace(std::move(key), made);
  return made;
}

std::pmr::string json_rules::spelled(std::string_view text) const {
  std::pmr::string out(b_.memory());
  constexpr std::string_view from = "\"\\\b\f\n\r\t", to = "\"\\bfnrt";
  for (char c : text) {
    size_t i = from.find(c);
    if (i != from.npos)
      out += {'\\', to[i]};
    else if (uint8_t(c) < 0x20)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", uint8_t(c));
    else
      out += c;
  }
  return out;
}

result<grammar> choice_grammar(std::span<std::pmr::string> texts,
                               std::pmr::memory_resource* memory) {
  grammar_builder b(memory);
  uint32_t root = b.add_rule("the choice");
  b.define(root, b.one_of(texts));
  return b.build(root);
}

result<grammar> json_object_grammar(std::pmr::memory_resource* memory) {
  grammar_builder b(memory);
  json_rules json(b);
  uint32_t root = b.add_rule("a JSON object");
  b.define(root, json.object());
  return b.build(root);
}

}  // namespace lethe
