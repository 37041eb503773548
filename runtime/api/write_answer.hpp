#pragma once

#include <ctime>
#include <span>

#include "runtime/api/api_ask.hpp"
#include "runtime/json/json_text.hpp"

namespace lethe {

/// A token as clients see it: its own text, which may be half a character, and how likely it was.
struct said_alternative {
  std::string_view text;
  float logprob = 0;
};
struct said_token {
  std::string_view text;
  float logprob = 0;
  std::span<const said_alternative> top;
  bool first = false;  // of an echoed prompt: nothing says how likely it was
};

/// What is said of one choice: all of it, or what is new since the last chunk.
struct said_choice {
  uint32_t index = 0;
  std::string_view text;
  std::string_view tool_calls;          // JSON list; empty: none
  const char* finish_reason = nullptr;  // null: goes on
  std::span<const said_token> tokens;   // if log-probabilities were asked
  uint32_t text_offset = 0;             // of the first of `tokens`, for completions
};

struct api_usage {
  uint32_t prompt_tokens = 0, completion_tokens = 0;
};

/// Writes the answers of one request in OpenAI's form, into the request's memory.
class answer_writer {
 public:
  answer_writer(api_call call, std::string_view id, std::string_view model, std::time_t created,
                bool logprobs, std::pmr::memory_resource* memory)
      : call_(call),
        id_(id),
        model_(model),
        created_(created),
        logprobs_(logprobs),
        memory_(memory) {}

  /// The body of an answer that is not streamed.
  std::pmr::string whole(std::span<const said_choice> choices, const api_usage& usage) const;
  /// "data: {...}\n\n" with what is new. A chat's first chunk of a choice names the role.
  std::pmr::string chunk(const said_choice& choice, bool first, bool null_usage) const;
  /// The chunk without choices that ends a stream where usage was asked.
  std::pmr::string usage_chunk(const api_usage& usage) const;
  static constexpr std::string_view done = "data: [DONE]\n\n";

 private:
  void head(json_text& out, bool streamed) const;
  void write_choice(json_text& out, const said_choice& c) const;
  void write_delta(json_text& out, const said_choice& c, bool first) const;

  api_call call_;
  std::string_view id_, model_;
  std::time_t created_;
  bool logprobs_;
  std::pmr::memory_resource* memory_;
};

}  // namespace lethe
