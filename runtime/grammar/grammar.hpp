#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <vector>

namespace lethe {

enum class grammar_op : uint8_t {
  bytes,  // takes a byte, low to high
  split,  // goes on at `next` and at `other`
  call,   // goes through the rule that begins at `other`, then on at `next`
  ret,    // the rule ends
};

/// One place of a compiled grammar.
struct grammar_node {
  grammar_op op = grammar_op::split;
  uint8_t low = 0, high = 0;
  /// A rule begins here that takes one plain character (token_trie.hpp): its call knows what
  /// follows.
  bool begins_character = false;
  uint32_t next = 0, other = 0;
  /// How many more rules must be open at once to come from here to the rule's end.
  uint16_t height = 0;
  /// At a call of a character's rule: that many plain characters can follow for sure.
  uint8_t run = 0;
  /// No more plain characters than that can follow.
  uint8_t reach = 0;
};

/// Which texts an answer may be: rules of bytes that call each other. It derives from what a user
/// wrote, and lives in that request's memory.
struct grammar {
  static constexpr uint32_t dead = 0, end = 1;  // the node without a way on, and the only `ret`
  static constexpr uint16_t endless = UINT16_MAX;
  static constexpr uint8_t run_max = 32;  // in `run` and `reach`: so many or more

  explicit grammar(std::pmr::memory_resource* memory) : nodes(memory) {}

  std::pmr::vector<grammar_node> nodes;
  uint32_t start = dead;
  std::array<uint8_t, 256> class_of = {};  // bytes of one class are equal to every node
  uint32_t classes = 1;
};

}  // namespace lethe
