#include "runtime/grammar/emitter.hpp"

#include <algorithm>

namespace lethe {

void grammar_emitter::emit_all() {
  add({.op = grammar_op::split, .next = grammar::dead, .other = grammar::dead});
  add({.op = grammar_op::ret});
  for (const auto& r : from_.rules_) {
    begins_.push_back(uint32_t(nodes_.size()));
    starts_.push_back(emit(r.body, grammar::end));
    if (from_.failed()) return;
    if (r.one_character) mark_first(starts_.back());
  }
  one_character_.resize(nodes_.size());
  for (uint32_t r = 0; r < rules(); ++r)
    if (from_.rules_[r].one_character) one_character_[starts_[r]] = true;
  for (auto& n : nodes_)
    if (n.op == grammar_op::call) n.other = starts_[n.other];
}

/// A character's rule has few nodes at its beginning, and no loop there.
void grammar_emitter::mark_first(uint32_t node) {
  auto& n = nodes_[node];
  if (node <= grammar::end || n.begins_character) return;
  n.begins_character = true;
  if (n.op != grammar_op::split) return;
  mark_first(n.next);
  mark_first(nodes_[node].other);
}

uint32_t grammar_emitter::rule_of(uint32_t node) const {
  auto behind = std::ranges::upper_bound(begins_, node);
  return uint32_t(behind - begins_.begin()) - 1;
}

uint32_t grammar_emitter::add(const grammar_node& n) {
  if (nodes_.size() >= limits::grammar_nodes_max)
    from_.fail_with(
        fail("it is too large; a grammar has at most {} nodes", limits::grammar_nodes_max));
  if (!from_.work(1)) return grammar::dead;
  nodes_.push_back(n);
  return uint32_t(nodes_.size() - 1);
}

/// Recursion is as deep as groups are nested, which the front ends bound.
uint32_t grammar_emitter::emit(builder::expr e, uint32_t next) {
  const auto& n = from_.exprs_[e.id];
  auto part = [&](uint32_t i) { return from_.parts_[n.first + i]; };
  switch (n.is) {
    case builder::kind::empty:
      return next;
    case builder::kind::nothing:
      return grammar::dead;
    case builder::kind::literal:
      return emit_literal(std::string_view(from_.bytes_).substr(n.first, n.count), next);
    case builder::kind::one_of:
      return emit_texts(std::span(from_.texts_).subspan(n.first, n.count), 0, next);
    case builder::kind::set:
      return emit_set(std::span(from_.ranges_).subspan(n.first, n.count), next);
    case builder::kind::sequence:
      for (uint32_t i = n.count; i-- > 0 && !from_.failed();) next = emit(part(i), next);
      return next;
    case builder::kind::either: {
      uint32_t at = emit(part(n.count - 1), next);
      for (uint32_t i = n.count - 1; i-- > 0 && !from_.failed();)
        at = split(emit(part(i), next), at);
      return at;
    }
    case builder::kind::repeat:
      return emit_repeat(n, next);
    case builder::kind::call:
      return add({.op = grammar_op::call, .next = next, .other = n.first});
  }
  return next;
}

uint32_t grammar_emitter::emit_literal(std::string_view text, uint32_t next) {
  for (size_t i = text.size(); i-- > 0;) next = bytes(uint8_t(text[i]), uint8_t(text[i]), next);
  return next;
}

/// All agree up to `at`. Recursion only where they part: less deep than there are texts, and than
/// the longest is long.
uint32_t grammar_emitter::emit_texts(std::span<const std::pmr::string> sorted, size_t at,
                                     uint32_t next) {
  if (from_.failed()) return grammar::dead;
  if (sorted.size() == 1) return emit_literal(std::string_view(sorted[0]).substr(at), next);
  size_t common = at;
  const auto &low = sorted.front(), &high = sorted.back();
  while (common < low.size() && low[common] == high[common]) ++common;
  uint32_t here = grammar::dead;
  auto join = [&](uint32_t branch) { here = here == grammar::dead ? branch : split(branch, here); };
  if (low.size() == common) {
    join(next);
    sorted = sorted.subspan(1);
  }
  while (!sorted.empty() && !from_.failed()) {
    char byte = sorted.front()[common];
    size_t same = 1;
    while (same < sorted.size() && sorted[same][common] == byte) ++same;
    join(bytes(uint8_t(byte), uint8_t(byte), emit_texts(sorted.first(same), common + 1, next)));
    sorted = sorted.subspan(same);
  }
  return emit_literal(std::string_view(low).substr(at, common - at), here);
}

uint32_t grammar_emitter::emit_set(std::span<const codepoint_range> ranges, uint32_t next) {
  std::pmr::vector<utf8_span> spans(from_.memory());
  for (auto r : ranges) append_utf8_spans(r, spans);
  uint32_t any[4] = {next, 0, 0, 0};  // behind them: that many bytes that only go on
  uint32_t here = grammar::dead;
  for (const auto& s : spans) {
    uint32_t at = next;
    for (uint32_t i = s.length; i-- > 0;) {
      uint32_t behind = s.length - i;
      bool whole = i > 0 && s.low[i] == 0x80 && s.high[i] == 0xBF && at == any[behind - 1];
      if (whole && any[behind] != 0) {
        at = any[behind];
        continue;
      }
      at = bytes(s.low[i], s.high[i], at);
      if (whole) any[behind] = at;
    }
    here = here == grammar::dead ? at : split(at, here);
  }
  return here;
}

uint32_t grammar_emitter::emit_repeat(const builder::node& n, uint32_t next) {
  builder::expr what{n.first};
  uint32_t at = next;
  if (n.most == builder::no_end) {
    at = split(grammar::dead, next);
    uint32_t once = emit(what, at);
    nodes_[at].next = once;
  } else {
    for (uint32_t i = n.least; i < n.most && !from_.failed(); ++i) at = split(emit(what, at), next);
  }
  for (uint32_t i = 0; i < n.least && !from_.failed(); ++i) at = emit(what, at);
  return at;
}

}  // namespace lethe
