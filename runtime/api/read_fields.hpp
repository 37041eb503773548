#pragma once

#include <span>

#include "runtime/api/api_ask.hpp"

namespace lethe {

/// One member of a body: reads its value into the ask, or says what is wrong with it.
struct api_field {
  const char* name;
  api_refusal (*read)(api_ask& into, json_slice value);
};

/// Fields of both calls; then those of one. Everything that is not in them is refused.
std::span<const api_field> common_fields();
std::span<const api_field> form_fields();
std::span<const api_field> chat_fields();
std::span<const api_field> completion_fields();

/// Whether the tools are such that a call of one can be required, where `tool_choice` says so.
api_refusal check_forced_calls(const api_ask& ask);

}  // namespace lethe
