#pragma once

#include "runtime/api/api_ask.hpp"

namespace lethe {

/// Whether a message is one of a chat: its role is known, its content a text, parts of text,
/// or nothing. `i` is its place, for the refusal.
api_refusal check_message(json_slice message, size_t i);

/// Checked messages as JSON for a chat template. Templates add contents to texts, so each has one:
/// parts become its lines, as vLLM joins them, and nothing becomes "".
std::pmr::string template_messages(json_slice messages, std::pmr::memory_resource* memory);

}  // namespace lethe
