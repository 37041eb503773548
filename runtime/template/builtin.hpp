#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "runtime/template/rendering.hpp"

namespace lethe::jinja {

struct named_value {
  std::string_view name;
  value is;
};

/// What a filter, test, function or method was given. `self` is the filtered value or the
/// method's owner. By-position and by-name arguments meet in `bound`, in the order of the row's
/// parameters; a row that takes any arguments reads `rest` and `named`.
struct arguments {
  value self;
  std::span<const value> rest;
  std::span<const named_value> named;
  std::array<const value*, 6> bound{};

  bool has(size_t i) const { return bound[i] != nullptr; }
  value at(size_t i, value otherwise = {}) const { return bound[i] ? *bound[i] : otherwise; }
  bool flag(size_t i, bool otherwise) const { return bound[i] ? truth(*bound[i]) : otherwise; }
};

struct builtin {
  std::string_view name;
  value (*call)(rendering& r, const arguments& in);
  std::string_view parameters;  // names, a space between; "*": any
  uint8_t required = 0;
};

using builtins = std::span<const builtin>;

builtins text_filters();
builtins list_filters();
builtins choosing_filters();
builtins number_filters();
builtins all_tests();
builtins all_globals();
builtins text_methods();
builtins text_checks();
builtins list_methods();
builtins tuple_methods();
builtins dict_methods();
builtins object_methods(const object& o);

const builtin* find_in(builtins rows, std::string_view name);
const builtin* find_filter(std::string_view name);
const builtin* find_test(std::string_view name);
/// Null where a value of this kind has no such method.
const builtin* find_method(const value& self, std::string_view name);
/// All names, for an error text.
std::string filter_names();
std::string test_names();

/// Binds the arguments by the row's parameters, and calls it.
value invoke(rendering& r, const builtin& b, arguments in);

// What builtins share; each fails with the construct's name where the value does not fit.

/// Any value as a row of values: list, tuple, keys, code points; undefined is empty.
std::span<const value> elements(rendering& r, const value& v);
value make_list(rendering& r, std::span<const value> items, bool lazy = false);
value make_tuple(rendering& r, std::initializer_list<value> items);
/// Python's str(): the text itself, "" for undefined, "True", "1.0", "['a']".
std::string_view as_text(rendering& r, const value& v);
void append_text(rendering& r, text_sink& to, const value& v);
void append_repr(rendering& r, text_sink& to, const value& v);
/// `v` along a path as filters take it: "a.b.0", or an index; `otherwise` where a step is missing.
value deep_item(rendering& r, value v, const value& path, const value& otherwise = {});
int64_t whole_argument(rendering& r, const arguments& in, size_t i, int64_t otherwise,
                       std::string_view what);
std::string_view text_argument(rendering& r, const arguments& in, size_t i,
                               std::string_view otherwise, std::string_view what);

}  // namespace lethe::jinja
