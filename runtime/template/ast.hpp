#pragma once

#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/template/value.hpp"

namespace lethe::jinja {

struct builtin;
struct statement;

/// A name of the template, as an index: scopes compare numbers.
using symbol = uint32_t;
using block = std::span<const statement* const>;

enum class op : uint8_t {
  constant,
  captured,
  name,
  list,
  tuple,
  dict,
  attribute,
  item,
  slice,
  call,
  filter,
  test,
  invert,
  negate,
  positive,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  concat,
  compare,
  both,
  either,
  choose,
  spread,
  spread_named
};

enum class relation : uint8_t {
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in
};

struct expr;
struct named_expr {
  std::string_view name;
  const expr* given;
};

/// `of` holds the operands in source order; what each means stands where it is evaluated.
struct expr {
  op what = op::constant;
  uint32_t line = 0;
  symbol id = 0;          // name
  std::string_view text;  // name, attribute, filter, test
  value constant;
  std::span<const expr* const> of;      // a missing operand is null
  std::span<const named_expr> named;    // call, filter, test
  std::span<const relation> relations;  // compare
  const builtin* function = nullptr;    // filter, test; the global behind a name
};

/// What an assignment writes: one name, an attribute of a namespace, or several targets.
struct target {
  enum class form : uint8_t { name, attribute, several } what = form::name;
  symbol id = 0;
  std::string_view text;  // the name
  std::string_view attribute;
  std::span<const target> of;
};

struct parameter {
  symbol id = 0;
  std::string_view name;
  const expr* otherwise = nullptr;
};

struct macro_definition {
  std::string_view name;
  std::span<const parameter> parameters;
  block body;
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};

struct arm {
  const expr* when = nullptr;  // null: else
  block then;
};

struct binding {
  target to;
  const expr* given = nullptr;
};

enum class act : uint8_t {
  text,
  print,
  branch,
  loop,
  assign,
  assign_block,
  macro,
  call,
  filter,
  with,
  evaluate,
  leave,
  next
};

struct statement {
  act what = act::text;
  uint32_t line = 0;
  std::string_view text;
  const expr* given = nullptr;  // printed, iterated, assigned, called; a filter over the body
  const expr* only = nullptr;   // the loop's condition
  target to;
  symbol id = 0;  // the macro's name
  block body, otherwise;
  std::span<const arm> arms;
  std::span<const binding> bindings;
  const macro_definition* macro = nullptr;
  bool recursive = false;
};

/// A compiled template. Everything points into `pool`.
struct program {
  program() = default;
  program(const program&) = delete;

  std::pmr::monotonic_buffer_resource pool;
  std::pmr::unordered_map<std::string_view, symbol> symbols{&pool};
  block body;
  symbol loop = 0, caller = 0, varargs = 0, kwargs = 0;

  symbol intern(std::string_view name);
  std::string_view keep(std::string_view text);
};

}  // namespace lethe::jinja
