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

struct piece {
  uint32_t begin, end;
  bool first;  // starts where the whole text starts
};

struct pieces {
  explicit pieces(std::pmr::memory_resource* memory) : text(memory), cuts(memory) {}
  std::string_view at(piece p) const {
    return std::string_view(text).substr(p.begin, p.end - p.begin);
  }
  std::pmr::string text;
  std::pmr::vector<piece> cuts;
};

/// Cuts further by each in turn. `p.text` must be valid UTF-8.
result<void> apply(std::span<const any> all, pieces& p, match_session& s);

}  // namespace lethe::pre_tokenizers
