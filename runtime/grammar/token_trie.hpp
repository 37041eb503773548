#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/tokenizer.hpp"

namespace lethe {

/// A vocabulary's tokens by their bytes: made once for a tokenizer, shared by all requests.
/// Tokens of at most 32 plain characters and nothing else (codepoints.hpp) stand apart, with a
/// ready mask for each length: where a grammar takes any plain characters, as inside a JSON text,
/// those need no walk.
class token_trie {
 public:
  /// In depth-first order, so that a walk is one pass with jumps over what can't follow.
  struct node {
    uint32_t skip = 0;   // the next node that is not below this one
    uint32_t first = 0;  // of the ids of this and all later nodes
    uint16_t depth = 0;  // 1 for a token's first byte
    uint8_t byte = 0;
  };
  struct branch {
    std::vector<node> nodes;
    std::vector<uint32_t> ids;
    std::span<const uint32_t> ids_at(size_t i) const {
      size_t end = i + 1 < nodes.size() ? nodes[i + 1].first : ids.size();
      return std::span(ids).subspan(nodes[i].first, end - nodes[i].first);
    }
  };
  static constexpr size_t token_bytes_max = 1024;  // longer ones are never allowed

  /// Control tokens are said by no grammar.
  explicit token_trie(const tokenizer& words);
  /// By id; an empty text is no token.
  explicit token_trie(std::span<const std::string_view> tokens);

  std::string_view bytes(uint32_t id) const;
  uint32_t size() const { return uint32_t(ends_.size()); }
  size_t words() const { return (ends_.size() + 63) / 64; }
  size_t longest() const { return longest_; }
  const branch& plain() const { return plain_; }
  const branch& rest() const { return rest_; }
  /// One bit per id: tokens of 1 to so many plain characters; all of `plain` from run_max on.
  std::span<const uint64_t> plain_up_to(uint32_t characters) const;

 private:
  void build(std::span<const std::string_view> tokens);
  static branch branch_of(std::span<const std::string_view> tokens, std::vector<uint32_t> ids);

  std::string bytes_;
  std::vector<uint32_t> ends_;
  size_t longest_ = 0;
  branch plain_, rest_;
  std::vector<uint64_t> masks_;  // one after another
};

}  // namespace lethe
