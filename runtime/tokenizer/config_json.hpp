#pragma once

#include <string_view>

#include "runtime/tokenizer/tokenizer_parts.hpp"

namespace lethe::json {

/// What tokenizer_config.json adds: the names of special tokens, whether a text begins with bos
/// and ends with eos, chat templates. `parts.tokens` must be complete.
result<void> read_config(std::string_view text, tokenizer_parts& parts);

}  // namespace lethe::json
