#pragma once

#include <memory_resource>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/tokenizer/pattern.hpp"

/// How tokens become text again: the "decoder" of tokenizer.json, one token at a time.
namespace lethe::decoders {

struct byte_level {};
struct byte_fallback {};
/// From here on the tokens are one stream.
struct fuse {};
struct strip {
  std::string content;
  size_t start, stop;
};
struct replace {
  pattern what;
  bool is_regex;
  std::string literal, with;
};
struct metaspace {
  std::string replacement;
  bool drops_in_first;  // all of the first token's, not only the leading one
};
struct wordpiece {
  std::string prefix;
  bool cleanup;
};
struct word_suffix {
  std::string suffix;
};
struct join {
  std::string separator;
};

using step = std::variant<byte_level, byte_fallback, fuse, strip, replace, metaspace, wordpiece,
                          word_suffix, join>;

/// Refuses orders that make no sense: what works on tokens after they became one stream.
result<void> validate(std::span<const step> steps);

/// The steps at work on one answer. The bytes that it gives may be invalid UTF-8, as tokens
/// may be halves of characters. All state lies in the caller's memory.
class run {
 public:
  /// `middle`: as if other tokens stood before and will follow.
  run(std::span<const step> steps, std::pmr::memory_resource* memory, bool middle = false);

  /// `literal`: an added token, which is spelled as it reads.
  void push(std::string_view token, bool literal, std::pmr::string& out);
  void finish(std::pmr::string& out);

 private:
  struct state {
    explicit state(std::pmr::memory_resource* memory) : held(memory) {}
    std::pmr::string held;
    size_t tokens = 0, stripped = 0;
    bool fused = false, head_done = false;
  };
  struct visitor;
  void pass(size_t at, std::string_view token, bool literal, std::pmr::string& out);

  std::span<const step> steps_;
  std::pmr::vector<state> states_;
  bool middle_;
};

}  // namespace lethe::decoders
