#pragma once

#include <deque>
#include <map>

#include "runtime/grammar/json_rules.hpp"
#include "runtime/grammar/schema_words.hpp"

namespace lethe {

/// One schema on its way to a grammar. Every schema inside becomes a rule of its own, made in turn:
/// references may lead anywhere, and no chain of them deepens the stack. What is wrong is
/// noted in the builder, with a pointer to it.
class schema_compiler {
 public:
  schema_compiler(json_slice root, grammar_builder& into);
  /// All of the schema; what it calls is defined.
  grammar_builder::expr compile();

 private:
  using expr = grammar_builder::expr;
  using word = schema_word;
  /// Where a schema stands, as a way from the root.
  struct place {
    uint32_t up = 0;
    std::string_view name;
    uint32_t index = 0;  // where the name is empty
  };
  struct waiting {
    json_slice schema;
    uint32_t place, rule;
  };
  struct property {
    std::pmr::string name;
    expr value;
    bool required = false;
  };
  /// What is said of an object, by one schema or by several together.
  struct object_parts {
    std::pmr::vector<property> properties;
    std::pmr::map<std::pmr::string, uint32_t> by_name;
    std::pmr::vector<std::pmr::string> required;
    bool closed = false, opened = false;
    std::optional<expr> others;  // what additional properties hold
  };

  // schema_compiler.cpp
  template <class... Args>
  expr refuse(uint32_t at, fmt::format_string<Args...> format, Args&&... args) {
    b_.fail_with(
        fail("schema {}: {}", pointer(at), fmt::format(format, std::forward<Args>(args)...)));
    return {};
  }
  std::string pointer(uint32_t at) const;
  uint32_t below(uint32_t at, json_slice key);
  uint32_t below(uint32_t at, const char* name);
  uint32_t below(uint32_t at, uint32_t index);
  expr call(json_slice schema, uint32_t at);
  expr body(json_slice schema, uint32_t at);
  std::optional<schema_words> read_words(json_slice schema, uint32_t at);
  bool only(const schema_words& w, std::initializer_list<word> allowed, word with, uint32_t at);
  std::optional<json_slice> resolve(json_slice reference, uint32_t at);
  expr any_of(json_slice list, word which, uint32_t at);
  expr of_types(const schema_words& w, uint32_t at);
  expr of_type(json_slice type, const schema_words& w, uint32_t at);
  std::optional<uint32_t> count(const schema_words& w, word which, uint32_t at);

  // schema_object.cpp
  expr all_of(json_slice schema, const schema_words& w, uint32_t at);
  bool collect(json_slice schema, uint32_t at, object_parts& into, uint32_t depth);
  bool collect_words(const schema_words& w, uint32_t at, object_parts& into);
  object_parts no_parts() const;
  bool add_required(uint32_t at, object_parts& parts);
  expr object(const schema_words& w, uint32_t at);
  expr joined(object_parts& parts, uint32_t at);
  expr members(const object_parts& parts, expr others);
  expr other_key(const object_parts& parts);
  expr other_text(std::span<const std::u32string_view> names, size_t at);
  expr list(const schema_words& w, uint32_t at);

  // schema_values.cpp
  expr enumerated(const schema_words& w, uint32_t at);
  bool fits_types(json_slice value, const schema_words& w) const;
  std::pmr::string spelled(json_slice value) const;
  expr text(const schema_words& w, uint32_t at);
  expr formatted(json_slice format, uint32_t at);
  expr number(const schema_words& w, uint32_t at);
  expr integer(const schema_words& w, uint32_t at);
  std::optional<int64_t> bound(const schema_words& w, word closed, word open, uint32_t at);

  json_slice root_;
  grammar_builder& b_;
  json_rules json_;
  std::pmr::vector<place> places_;
  std::pmr::deque<waiting> queue_;
  std::pmr::map<const char*, uint32_t> rules_;
};

/// Integers from `least` to `most` as digits; without one, without that bound.
grammar_builder::expr integers_between(grammar_builder& b, json_rules& json,
                                       std::optional<int64_t> least, std::optional<int64_t> most);

/// The pattern of a format, if it is one that is enforced.
std::optional<std::string> pattern_of_format(json_slice name);

}  // namespace lethe
