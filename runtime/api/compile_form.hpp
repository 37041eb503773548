#pragma once

#include "runtime/api/api_ask.hpp"
#include "runtime/api/tool_calls.hpp"
#include "runtime/grammar/grammar.hpp"

namespace lethe {

/// Compiles the form that the ask names, on the caller's thread and in the ask's memory. `into`
/// stays empty when any text will do. Calls that are required have a form of their own, and leave
/// no words for another; `format` is how the model writes calls. A refusal names the parameter.
api_refusal compile_form(const api_ask& ask, tool_format format, std::optional<grammar>& into);

}  // namespace lethe
