#pragma once

#include <memory_resource>
#include <span>
#include <string_view>

#include "runtime/template/ast.hpp"
#include "runtime/template/value.hpp"

namespace lethe::jinja {

/// The variables of one block, loop turn or macro call. Inner ones hide outer ones.
struct scope {
  explicit scope(std::pmr::memory_resource* m) : held(m) {}
  struct variable {
    symbol id;
    value is;
  };
  scope* outer = nullptr;
  std::pmr::vector<variable> held;
  bool captured = false;  // a macro was made here and may look at it later

  value* find(symbol id) {
    for (auto& v : held) {
      if (v.id == id) return &v.is;
    }
    return nullptr;
  }
  void put(symbol id, const value& v) {
    if (value* known = find(id)) {
      *known = v;
    } else {
      held.push_back({id, v});
    }
  }
};

/// What is neither data nor text. Told apart by `what`; lives in the rendering's memory.
struct object {
  enum class form : uint8_t { space, loop, macro, function, method, cycler, joiner };
  explicit object(form f) : what(f) {}
  form what;
};

/// `namespace(...)`: the one thing that an inner scope may write to.
struct space_object : object {
  explicit space_object(dictionary* d) : object(form::space), held(d) {}
  dictionary* held;
};

/// `loop` inside a for.
struct loop_object : object {
  loop_object() : object(form::loop) {}
  const statement* source = nullptr;
  scope* around = nullptr;
  std::span<const value> items;
  size_t index = 0;
  int64_t depth = 1;
  value last;
  bool compared = false;  // `changed` was asked before
};

struct macro_object : object {
  macro_object() : object(form::macro) {}
  const macro_definition* source = nullptr;
  scope* around = nullptr;
};

struct function_object : object {
  explicit function_object(const builtin* b) : object(form::function), source(b) {}
  const builtin* source;
};

struct method_object : object {
  method_object(const builtin* b, const value& v) : object(form::method), source(b), self(v) {}
  const builtin* source;
  value self;
};

struct cycler_object : object {
  cycler_object() : object(form::cycler) {}
  std::span<const value> items;
  size_t index = 0;
};

struct joiner_object : object {
  explicit joiner_object(std::string_view t) : object(form::joiner), between(t) {}
  std::string_view between;
  bool used = false;
};

std::string_view object_name(const object& o);

}  // namespace lethe::jinja
