#pragma once

#include <simdjson.h>

#include <string>

#include "runtime/base/result.hpp"

namespace lethe {

/// What GGUF calls the way that a byte-level tokenizer.json cuts text into words
/// (tokenizer.ggml.pre): the pre_tokenizer's pattern decides.
result<std::string> split_name(simdjson::dom::object tokenizer_json);

/// Whether a tokenizer.json spells bytes with printable characters (GPT-2's way).
bool is_byte_level(simdjson::dom::object tokenizer_json);

}  // namespace lethe
