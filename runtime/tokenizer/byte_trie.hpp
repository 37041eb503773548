#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace lethe {

/// Which of many texts begin at a place. The keys need not outlive it.
class byte_trie {
 public:
  using entry = std::pair<std::string_view, uint32_t>;
  static constexpr uint32_t nothing = UINT32_MAX;

  byte_trie() : byte_trie(std::vector<entry>{}) {}
  /// Of two equal keys the later one counts. Empty keys are left out.
  explicit byte_trie(std::vector<entry> entries);

  /// Whether any key begins with this byte.
  bool begins(uint8_t byte) const noexcept { return first_[byte] != nothing; }
  /// Calls `visit(length, value)` for every key that `text` starts with, the shortest first.
  template <class Visit>
  void each_prefix(std::string_view text, Visit visit) const {
    uint32_t at = 0;
    for (size_t i = 0; i < text.size(); i++) {
      at = child(at, uint8_t(text[i]));
      if (at == nothing) return;
      if (nodes_[at].value != nothing) visit(i + 1, nodes_[at].value);
    }
  }

 private:
  struct node {
    uint32_t first_child = 0;
    uint32_t value = nothing;
    uint16_t children = 0;
    uint8_t label = 0;
  };
  uint32_t child(uint32_t at, uint8_t label) const noexcept;
  std::vector<node> nodes_;
  std::array<uint32_t, 256> first_ = {};  // children of the root
};

}  // namespace lethe
