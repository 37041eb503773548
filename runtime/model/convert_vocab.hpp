#pragma once

#include <filesystem>

#include "parallel/shape.hpp"
#include "runtime/base/result.hpp"
#include "runtime/model/generation_defaults.hpp"
#include "runtime/model/gguf_write.hpp"

namespace lethe {

/// Adds a Hugging Face folder's tokenizer (tokenizer.json, tokenizer_config.json,
/// chat_template.jinja) to a GGUF header. What GGUF has no words for is refused.
result<void> add_vocab(const std::filesystem::path& folder, const model_shape& shape,
                       const generation_defaults& defaults, gguf_header& header);

}  // namespace lethe
