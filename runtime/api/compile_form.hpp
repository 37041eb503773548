#pragma once

#include "runtime/api/api_ask.hpp"
#include "runtime/grammar/grammar.hpp"

namespace lethe {

/// Compiles the form that the ask names, on the caller's thread and in the ask's memory. `into`
/// stays empty when any text will do. A refusal names the parameter.
api_refusal compile_form(const api_ask& ask, std::optional<grammar>& into);

}  // namespace lethe
