#pragma once

#include "runtime/api/api_ask.hpp"
#include "runtime/api/tool_calls.hpp"
#include "runtime/grammar/grammar.hpp"

namespace lethe {

/// A call that must be is written as JSON and nothing else, whatever the model's own format is: its
/// marks may be control tokens, which no form can spell. It is read back as this.
inline constexpr tool_format forced_call_format = tool_format::llama_json;

/// Answers that are calls of the ask's tools: one, or several if it allows them. `format` is what
/// the model knows. The ask was checked. Errors begin with where in the body the fault lies.
result<grammar> forced_calls_grammar(const api_ask& ask, tool_format format);

}  // namespace lethe
