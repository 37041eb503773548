#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/tokenizer/pattern.hpp"

/// How a text is cut into words before the model sees it: the "pre_tokenizer" of tokenizer.json.
namespace lethe::pre_tokenizers {

enum class behavior : uint8_t {
  removed,
  isolated,
  merged_with_previous,
  merged_with_next,
  contiguous
};
struct split {
  pattern what;
  behavior how;
  bool invert = false;
};

enum class characters : uint8_t { white_space, number, punctuation };
struct split_characters {
  characters what;
  behavior how;
};

/// A space before each piece that has none.
struct prefix_space {};
/// Each byte becomes the character that stands for it in byte-level vocabularies.
struct byte_characters {};

enum class prepend_scheme : uint8_t { always, first, never };
/// Spaces become `replacement`, and one more stands in front.
struct metaspace {
  std::string replacement;
  prepend_scheme scheme;
};

using any = std::variant<split, split_characters, prefix_space, byte_characters, metaspace>;
inline constexpr size_t steps_max = 64;  // a text goes through; published files have a few

struct piece {
  std::string_view text;
  bool first;  // starts where the whole text starts
};

/// Who is given the words: some at a time, until the next are.
class taker {
 public:
  virtual void take(std::span<const piece> words) = 0;

 protected:
  ~taker() = default;
};

/// Cuts texts by each step in turn, some pieces at a time: as many as are still in the nearest
/// cache for the step after, however many there are.
class cutter {
 public:
  /// For texts of about so many bytes in all.
  cutter(std::span<const any> steps, match_session& s, taker& to, size_t bytes,
         std::pmr::memory_resource* memory);
  /// Of valid UTF-8; `first`: the text starts where the whole text starts. Not after a failure.
  result<void> cut(std::string_view text, bool first);

 private:
  /// What a step has to cut; the last one's are words.
  struct queue {
    queue(size_t room, std::pmr::memory_resource* memory) : pieces(room, memory), text(memory) {}
    std::pmr::vector<piece> pieces;
    size_t count = 0;
    std::pmr::string text;  // of those that the step before wrote anew
  };
  /// False, here and below: a pattern gave up.
  bool push(size_t step, piece p);
  bool flush(size_t step);
  bool run(const split& how, size_t step);
  bool run(const split_characters& how, size_t step);
  bool run(const prefix_space&, size_t step);
  bool run(const byte_characters&, size_t step);
  bool run(const metaspace& how, size_t step);
  template <class Cut>
  bool cut_each(size_t step, behavior how, bool invert, Cut cut);
  /// `write` writes a piece anew, at most so many bytes for each byte and one more, and says where
  /// it ends.
  template <class Write>
  void rewrite(size_t step, size_t for_each_byte, Write write);

  std::span<const any> steps_;
  match_session& session_;
  taker& to_;
  std::pmr::vector<queue> queues_;
};

}  // namespace lethe::pre_tokenizers
