#pragma once

#include <functional>
#include <string_view>

#include "runtime/grammar/builder.hpp"

namespace lethe {

/// How one character of a pattern stands in the answer: as it is, or inside a JSON text.
using character_form = std::function<grammar_builder::expr(const codepoint_set&)>;

/// A regular expression as an expression of a grammar: literals, `.`, classes with \d \w \s,
/// groups, alternatives, * + ? {n} {n,} {m,n} (lazy or not, the texts are the same), ^ and $ at the
/// ends of the whole or of its alternatives. Look-around, back references, \b, flags and \p are
/// refused: a reason is returned. With `search` a text needs only to contain a match, as JSON
/// schemas mean it.
result<grammar_builder::expr> parse_pattern(std::string_view pattern, grammar_builder& b,
                                            const character_form& form, bool search);

/// A whole answer that matches.
result<grammar> pattern_grammar(std::string_view pattern, std::pmr::memory_resource* memory);

}  // namespace lethe
