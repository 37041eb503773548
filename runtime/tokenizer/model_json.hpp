#pragma once

#include <functional>

#include "runtime/tokenizer/json_fields.hpp"
#include "runtime/tokenizer/tokenizer_parts.hpp"

namespace lethe::json {

/// Reads tokenizer.json's "model" into parts.tokens, parts.model and parts.unk. `is_control`
/// tells which tokens no text may turn into.
result<void> read_model(object o, tokenizer_parts& parts,
                        const std::function<bool(std::string_view)>& is_control);

}  // namespace lethe::json
