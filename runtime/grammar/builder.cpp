#include "runtime/grammar/builder.hpp"

#include <algorithm>

#include "runtime/grammar/checks.hpp"
#include "runtime/grammar/emitter.hpp"

namespace lethe {

grammar_builder::grammar_builder(std::pmr::memory_resource* memory)
    : memory_(memory),
      exprs_(1, node{}, memory),
      rules_(memory),
      parts_(memory),
      ranges_(memory),
      bytes_(memory),
      texts_(memory),
      set_rules_(memory) {}

void grammar_builder::fail_with(error why) {
  if (!failed_) failed_ = std::move(why);
}

bool grammar_builder::work(uint64_t steps) {
  steps_ += steps;
  if (steps_ > limits::grammar_steps_max)
    fail_with(
        fail("it takes more than {} steps to compile; make it simpler", limits::grammar_steps_max));
  return !failed();
}

grammar_builder::expr grammar_builder::make(node n) {
  if (exprs_.size() + parts_.size() + bytes_.size() >= 4 * size_t{limits::grammar_nodes_max})
    fail_with(fail("it is too large; a grammar has at most {} nodes", limits::grammar_nodes_max));
  if (!work(1)) return {};
  exprs_.push_back(n);
  return {uint32_t(exprs_.size() - 1)};
}

grammar_builder::expr grammar_builder::nothing() { return make({.is = kind::nothing}); }

grammar_builder::expr grammar_builder::literal(std::string_view bytes) {
  if (bytes.empty()) return {};
  auto first = uint32_t(bytes_.size());
  auto made = make({.is = kind::literal, .first = first, .count = uint32_t(bytes.size())});
  if (!failed()) bytes_.append(bytes);
  return made;
}

grammar_builder::expr grammar_builder::one_of(std::span<std::pmr::string> texts) {
  if (texts.empty()) return nothing();
  std::ranges::sort(texts);
  auto same = std::ranges::unique(texts);
  texts = texts.first(texts.size() - same.size());
  auto first = uint32_t(texts_.size());
  auto made = make({.is = kind::one_of, .first = first, .count = uint32_t(texts.size())});
  if (failed()) return {};
  for (const auto& t : texts) texts_.push_back(t);
  return made;
}

std::optional<grammar_builder::expr> grammar_builder::made_before(
    std::span<const codepoint_range> set) {
  std::pmr::vector<codepoint_range> key(set.begin(), set.end(), memory_);
  auto found = set_rules_.find(key);
  if (found == set_rules_.end()) return {};
  return call(found->second);
}

grammar_builder::expr grammar_builder::character(const codepoint_set& set) {
  auto ranges = set.ranges();
  if (ranges.empty()) return nothing();
  if (auto again = made_before(ranges)) return *again;
  if (!work(ranges.size())) return {};
  node n{.is = kind::set, .first = uint32_t(ranges_.size()), .count = uint32_t(ranges.size())};
  ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
  auto body = make(n);
  if (ranges.size() <= 2 && ranges.back().high < 0x80) return body;
  uint32_t rule = add_rule("a set of characters");
  if (failed()) return {};
  define(rule, body);
  if (set.contains(plain_characters)) takes_one_character(rule);
  set_rules_.emplace(std::pmr::vector<codepoint_range>(ranges.begin(), ranges.end(), memory_),
                     rule);
  return call(rule);
}

grammar_builder::expr grammar_builder::sequence(std::span<const expr> parts) {
  if (parts.empty()) return {};
  if (parts.size() == 1) return parts[0];
  node n{.is = kind::sequence, .first = uint32_t(parts_.size()), .count = uint32_t(parts.size())};
  if (!work(parts.size())) return {};
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  return make(n);
}

grammar_builder::expr grammar_builder::either(std::span<const expr> parts) {
  if (parts.empty()) return nothing();
  if (parts.size() == 1) return parts[0];
  node n{.is = kind::either, .first = uint32_t(parts_.size()), .count = uint32_t(parts.size())};
  if (!work(parts.size())) return {};
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  return make(n);
}

grammar_builder::expr grammar_builder::repeat(expr what, uint32_t least, uint32_t most) {
  if (least > limits::grammar_repeat_max || (most != no_end && most > limits::grammar_repeat_max)) {
    fail_with(fail("something is repeated more than {} times; leave the bound out, or lower it",
                   limits::grammar_repeat_max));
    return {};
  }
  if (least == 1 && most == 1) return what;
  // What is more than a leaf becomes a rule, so that repeating it costs two nodes each time.
  bool leaf = exprs_[what.id].is == kind::call || exprs_[what.id].is == kind::set ||
              (exprs_[what.id].is == kind::literal && exprs_[what.id].count <= 2);
  if (!leaf && std::max(least, most == no_end ? 0 : most) > 1) {
    uint32_t rule = add_rule("a repeated part");
    if (failed()) return {};
    define(rule, what);
    what = call(rule);
  }
  return make({.is = kind::repeat, .first = what.id, .least = least, .most = most});
}

grammar_builder::expr grammar_builder::call(uint32_t rule) {
  return make({.is = kind::call, .first = rule});
}

uint32_t grammar_builder::add_rule(std::string_view name) {
  if (rules_.size() >= limits::grammar_rules_max)
    fail_with(fail("it has more than {} rules", limits::grammar_rules_max));
  if (failed() && !rules_.empty()) return 0;
  rules_.push_back({.name = std::pmr::string(name, memory_)});
  return uint32_t(rules_.size() - 1);
}

void grammar_builder::define(uint32_t rule, expr body) {
  rules_[rule].body = body;
  rules_[rule].defined = true;
}

result<grammar> grammar_builder::build(uint32_t root) {
  if (failed_) return *failed_;
  grammar made(memory_);
  grammar_emitter emitter(*this, made.nodes);
  emitter.emit_all();
  if (failed_) return *failed_;
  made.start = emitter.start_of(root);
  if (auto ok = check_grammar(made, *this, emitter, root); !ok) return ok.why();
  measure_runs(made, emitter.one_character_rules());
  find_classes(made);
  return made;
}

}  // namespace lethe
