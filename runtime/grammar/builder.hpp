#pragma once

#include <map>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/limits.hpp"
#include "runtime/base/result.hpp"
#include "runtime/grammar/codepoints.hpp"
#include "runtime/grammar/grammar.hpp"

namespace lethe {

/// What the front ends make grammars with: expressions, put together from the inside out, and
/// rules that name them. A limit that is passed ends the work: from then on all calls are empty,
/// and `build` says why.
class grammar_builder {
 public:
  struct expr {
    uint32_t id = 0;  // 0: the empty text
  };
  static constexpr uint32_t no_end = UINT32_MAX;

  explicit grammar_builder(std::pmr::memory_resource* memory);

  std::pmr::memory_resource* memory() const { return memory_; }

  expr empty() const { return {}; }
  expr nothing();  // no text at all
  expr literal(std::string_view bytes);
  /// One of these texts. Common beginnings are shared, so many cost little.
  expr one_of(std::span<std::pmr::string> texts);
  /// One character out of these, as UTF-8.
  expr character(const codepoint_set& set);
  expr sequence(std::span<const expr> parts);
  expr sequence(std::initializer_list<expr> parts) { return sequence(std::span(parts)); }
  expr either(std::span<const expr> parts);
  expr either(std::initializer_list<expr> parts) { return either(std::span(parts)); }
  expr repeat(expr what, uint32_t least, uint32_t most = no_end);
  expr maybe(expr what) { return repeat(what, 0, 1); }
  expr call(uint32_t rule);

  /// Rules may be called before they are defined. The name is for errors.
  uint32_t add_rule(std::string_view name);
  void define(uint32_t rule, expr body);
  bool is_defined(uint32_t rule) const { return rules_[rule].defined; }
  std::string_view name_of(uint32_t rule) const { return rules_[rule].name; }
  /// The rule takes every plain character, and of texts of plain characters only those of one.
  void takes_one_character(uint32_t rule) { rules_[rule].one_character = true; }

  /// Work that the front end does; false when it is too much by now.
  bool work(uint64_t steps);
  bool failed() const { return failed_.has_value(); }
  void fail_with(error why);
  const error& why() const { return *failed_; }

  result<grammar> build(uint32_t root);

 private:
  friend class grammar_emitter;
  enum class kind : uint8_t {
    empty,
    nothing,
    literal,
    one_of,
    set,
    sequence,
    either,
    repeat,
    call
  };
  struct node {
    kind is = kind::empty;
    uint32_t first = 0, count = 0, least = 0, most = 0;
  };
  struct rule {
    std::pmr::string name;
    expr body;
    bool defined = false, one_character = false;
  };
  expr make(node n);
  std::optional<expr> made_before(std::span<const codepoint_range> set);

  std::pmr::memory_resource* memory_;
  std::pmr::vector<node> exprs_;
  std::pmr::vector<rule> rules_;
  std::pmr::vector<expr> parts_;
  std::pmr::vector<codepoint_range> ranges_;
  std::pmr::string bytes_;
  std::pmr::vector<std::pmr::string> texts_;
  std::pmr::map<std::pmr::vector<codepoint_range>, uint32_t> set_rules_;
  uint64_t steps_ = 0;
  std::optional<error> failed_;
};

}  // namespace lethe
