#pragma once

#include <map>

#include "runtime/grammar/builder.hpp"

namespace lethe {

/// JSON's own parts as rules, each made when it is first asked for. White space is bounded: at
/// each place where JSON allows it nothing, a space, or a line feed and up to 32 spaces or tabs;
/// none before or behind the whole.
/// Numbers are such that 64 bits or a double can hold them: at most 18 digits before the point, and
/// exponents of two digits, three below zero.
class json_rules {
 public:
  using expr = grammar_builder::expr;
  explicit json_rules(grammar_builder& b) : b_(b), sets_(b.memory()) {}

  expr blank();
  expr value();
  expr object();
  expr list();
  expr text() { return text_of(b_.repeat(text_character(), 0)); }
  expr number() { return b_.sequence({minus(), magnitude()}); }
  expr integer();
  expr boolean();
  expr null() { return b_.literal("null"); }

  /// "..." around what stands for its characters.
  expr text_of(expr characters);
  /// Any character of a text, in any of its spellings.
  expr text_character();
  /// A character of these, escaped only where it must be.
  expr character(const codepoint_set& set);
  /// A text or value that is known, spelled in one way.
  std::pmr::string spelled(std::string_view text) const;
  expr digits(uint32_t least = 0) { return b_.repeat(digit('0', '9'), least); }
  expr digit(char low, char high);
  /// A number without its sign.
  expr magnitude();

  /// open [part separator ...] close, with white space. `parts` is all from the first part on.
  expr around(char open, expr parts, char close);
  /// Behind a part: a comma, then `part`.
  expr then(expr part);
  /// key: value, where the key is a whole text.
  expr member(expr key, expr value);
  /// So many parts in a row, with commas.
  expr row(expr part, uint32_t least, uint32_t most);

 private:
  expr minus() { return b_.maybe(b_.literal("-")); }
  expr hex(const char* ranges);
  expr escape();
  template <class Make>
  expr once(std::optional<uint32_t>& rule, const char* name, Make make);

  grammar_builder& b_;
  std::optional<uint32_t> blank_, value_, object_, list_, character_, magnitude_, comma_, colon_;
  std::pmr::map<std::pmr::vector<codepoint_range>, expr> sets_;
};

/// One of these texts, as it stands.
result<grammar> choice_grammar(std::span<std::pmr::string> texts,
                               std::pmr::memory_resource* memory);
/// Any JSON object: what response_format json_object asks for.
result<grammar> json_object_grammar(std::pmr::memory_resource* memory);

}  // namespace lethe
