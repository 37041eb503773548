#pragma once

#include "runtime/grammar/builder.hpp"

namespace lethe {

/// Turns a builder's expressions into nodes, each from its end to its beginning: what follows is
/// known when a place is made.
class grammar_emitter {
 public:
  grammar_emitter(grammar_builder& from, std::pmr::vector<grammar_node>& into)
      : from_(from),
        nodes_(into),
        begins_(from.memory()),
        starts_(from.memory()),
        one_character_(from.memory()) {}

  void emit_all();
  uint32_t start_of(uint32_t rule) const { return starts_[rule]; }
  uint32_t rules() const { return uint32_t(starts_.size()); }
  /// The first of a rule's nodes; they end where the next rule's begin.
  uint32_t begin_of(uint32_t rule) const { return begins_[rule]; }
  /// The rule that a node belongs to.
  uint32_t rule_of(uint32_t node) const;
  /// By node: a rule begins here that takes one plain character.
  const std::pmr::vector<bool>& one_character_rules() const { return one_character_; }

 private:
  using builder = grammar_builder;
  uint32_t add(const grammar_node& n);
  void mark_first(uint32_t node);
  uint32_t bytes(uint8_t low, uint8_t high, uint32_t next) {
    return add({.op = grammar_op::bytes, .low = low, .high = high, .next = next});
  }
  uint32_t split(uint32_t next, uint32_t other) {
    return add({.op = grammar_op::split, .next = next, .other = other});
  }
  uint32_t emit(builder::expr e, uint32_t next);
  uint32_t emit_literal(std::string_view text, uint32_t next);
  uint32_t emit_texts(std::span<const std::pmr::string> sorted, size_t at, uint32_t next);
  uint32_t emit_set(std::span<const codepoint_range> ranges, uint32_t next);
  uint32_t emit_repeat(const builder::node& n, uint32_t next);

  builder& from_;
  std::pmr::vector<grammar_node>& nodes_;
  std::pmr::vector<uint32_t> begins_, starts_;
  std::pmr::vector<bool> one_character_;
};

}  // namespace lethe
