#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/api/tool_calls.hpp"
#include "runtime/base/result.hpp"
#include "runtime/template/chat_template.hpp"
#include "runtime/tokenizer/tokenizer.hpp"

namespace lethe {

/// A folder may hold weights only.
bool has_tokenizer(const std::filesystem::path& path);

/// The tokenizer of a model folder, a GGUF file, or a bare tokenizer.json.
result<tokenizer> open_tokenizer(const std::filesystem::path& path);

/// What a prompt's template needs.
struct opened_template {
  chat_template program;
  std::string bos_token, eos_token;
  tool_format tools = tool_format::none;  // how the model calls them
};

/// The chat template of a model folder or a GGUF file, whose tokenizer is `words`.
result<opened_template> open_template(const std::filesystem::path& path, const tokenizer& words);

/// The same where nobody has opened its tokenizer, or of a bare .jinja file, without bos and eos.
result<opened_template> open_template(const std::filesystem::path& path);

}  // namespace lethe
