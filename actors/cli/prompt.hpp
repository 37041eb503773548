#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/cli/generate_flags.hpp"
#include "runtime/tokenizer/tokenizer.hpp"

namespace lethe {

/// What is to be answered, before it is tokens: a text, ids, or messages for the template.
class prompt_text {
 public:
  static result<prompt_text> from(const generate_flags& flags);
  static prompt_text chat(std::string messages, const generate_flags& flags);

  size_t bytes() const { return text_.size() + ids_.size() * 8; }

 private:
  friend result<std::pmr::vector<uint32_t>> prompt_ids(const prompt_text&, const tokenizer*,
                                                       std::pmr::memory_resource*);
  enum class kind : uint8_t { text, ids, chat };
  kind kind_ = kind::text;
  std::string text_;
  std::vector<uint32_t> ids_;
  const generate_flags* flags_ = nullptr;
};

/// Rendered and tokenized in the request's memory. `words` may be null where the prompt is ids.
result<std::pmr::vector<uint32_t>> prompt_ids(const prompt_text& from, const tokenizer* words,
                                              std::pmr::memory_resource* memory);

/// Messages of a conversation in the terminal, as JSON.
class conversation {
 public:
  void say(std::string_view role, std::string_view content);
  std::string messages() const { return "[" + said_ + "]"; }

 private:
  std::string said_;
};

/// A line from the terminal; nothing at an empty line or the end of input.
std::optional<std::string> read_line(const char* prompt);

}  // namespace lethe
