#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lethe::split_patterns {

/// GPT-2's: what ByteLevel cuts by when tokenizer.json names no pattern.
extern const std::string_view gpt2;

/// What a GGUF's tokenizer.ggml.pre stands for.
struct family {
  std::string_view name;
  std::span<const std::string_view> patterns;  // each cuts what the one before left
  bool ignore_merges = false;
  bool adds_bos = false;  // where the file does not say
};

std::optional<family> find(std::string_view pre);
/// All names, for an error's text.
std::string names();

}  // namespace lethe::split_patterns
