#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lethe {

/// How a model writes the calls of tools into its answer.
enum class tool_format : uint8_t {
  none,
  hermes,      // <tool_call>{"name": ..., "arguments": {...}}</tool_call>, as Qwen does, too
  mistral,     // [TOOL_CALLS][{"name": ..., "arguments": {...}}]
  llama_json,  // {"name": ..., "parameters": {...}} and nothing else, maybe behind a mark
  pythonic,    // [name(argument=value, ...)] and nothing else: Llama 4
};

/// What a model was told about its tools shows how it will call them: the marks in its template.
tool_format tool_format_of(std::string_view template_source);
/// Texts that belong to a call. Some vocabularies have them as control tokens.
std::span<const std::string_view> marks_of(tool_format format);

struct tool_call {
  std::pmr::string id, name;
  std::pmr::string arguments;  // a JSON object
};

/// Where a text's brackets close, text in quotes aside; goes on where it stopped when there is
/// more text. What is inside need not make sense.
struct bracket_scan {
  size_t at = 0;
  bool python = false;  // ' quotes, too
  uint32_t depth = 0;
  char quote = 0;
  bool escaped = false, closed = false;

  /// The position behind the bracket that closes the first one, or npos: not yet.
  size_t run(std::string_view text);
};

/// Tells the calls in an answer from its words while it arrives. What may become a call is held
/// back; what is none after all is content, whole and in order. What comes out does not depend on
/// how the text was cut into pieces.
class tool_reader {
 public:
  tool_reader(tool_format format, std::pmr::memory_resource* memory);

  /// All text so far; `ended`: nothing follows.
  void read(std::string_view text, bool ended);
  std::string_view content() const { return content_; }
  std::span<const tool_call> calls() const { return calls_; }

 private:
  enum class verdict : uint8_t { open, call, words };

  void read_marked(std::string_view text, bool ended);
  verdict marked_call(std::string_view text, bool ended);
  void read_alone(std::string_view text, bool ended);
  verdict alone(std::string_view text, bool ended);
  bool take(std::string_view value);
  bool take_one(std::string_view object);
  void say(std::string_view text, size_t end);

  tool_format format_;
  std::pmr::memory_resource* memory_;
  std::pmr::string content_;
  std::pmr::vector<tool_call> calls_, found_;  // certain; not yet
  size_t at_ = 0;                              // before: content, or in a call
  size_t next_ = 0;                            // of a call that may be: what is to be read of it
  size_t call_end_ = SIZE_MAX;  // of the last one: blanks behind it are none of the words
  bool opened_ = false;         // its mark was read
  bool words_ = false;          // there is no call in all of the answer
  bracket_scan scan_;
};

/// The calls as the API says them: a JSON list. A streamed one numbers them from `first`.
std::pmr::string tool_calls_json(std::span<const tool_call> calls, uint32_t first, bool streamed,
                                 std::pmr::memory_resource* memory);

}  // namespace lethe
