#pragma once

#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/grammar/grammar.hpp"

namespace lethe {

/// A grammar as text:
///
///   root   ::= "[" number ("," " "? number)* "]"   # comments go to the line's end
///   number ::= [0-9]{1,4} | "-" [^0 \n\x00-\x1F]
///
/// Rules are names of letters, digits, - and _; `root` is what an answer is. Literals and classes
/// take \n \r \t \\ \" \' \[ \] \- \^ \xHH \uHHHH \UHHHHHHHH as characters, `.` is any character.
/// Groups, alternatives, * + ? {n} {n,} {m,n}. A rule goes on over lines until the next `name ::=`.
/// Errors say line:column.
result<grammar> parse_gbnf(std::string_view text, std::pmr::memory_resource* memory);

}  // namespace lethe
