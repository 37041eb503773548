#pragma once

#include <cstdint>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/byte_trie.hpp"

namespace lethe {

struct added_token {
  uint32_t id = 0;
  std::string text;
  bool special = false;                 // a control token; its text may also be just text
  bool single_word = false;             // only where no word goes on at either side
  bool lstrip = false, rstrip = false;  // takes the white space beside it
};

/// Finds tokens that are recognised by their text, whatever stands around them.
class added_tokens {
 public:
  explicit added_tokens(std::vector<added_token> tokens = {});

  static constexpr uint32_t no_token = UINT32_MAX;
  struct section {
    size_t begin, end;
    uint32_t id = no_token;  // else the text is that token
  };
  /// Cuts `text` into tokens and what lies between: of all that match, the leftmost; of those,
  /// the longest. Special ones only if `parse_special`.
  void cut(std::string_view text, bool parse_special, std::pmr::vector<section>& out) const;

 private:
  uint32_t longest(std::string_view text, size_t at, bool parse_special) const;
  std::vector<added_token> tokens_;
  byte_trie trie_;  // of indices into tokens_
};

}  // namespace lethe
