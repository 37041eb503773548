#include "runtime/template/builtin.hpp"

#include <algorithm>
#include <vector>

#include "runtime/template/unicode.hpp"

namespace lethe::jinja {
namespace {

/// The row's parameter number `i`, or "".
std::string_view parameter_at(std::string_view names, size_t i) {
  for (; i > 0 && !names.empty(); --i) {
    const size_t space = names.find(' ');
    names = space == names.npos ? std::string_view() : names.substr(space + 1);
  }
  return names.substr(0, names.find(' '));
}

size_t parameter_count(std::string_view names) {
  return names.empty() ? 0 : 1 + size_t(std::ranges::count(names, ' '));
}

bool bind(rendering& r, const builtin& b, arguments& in) {
  const size_t count = parameter_count(b.parameters);
  if (in.rest.size() > count) {
    return r.fail("{} takes at most {} arguments", b.name, count), false;
  }
  for (size_t i = 0; i < in.rest.size(); ++i) in.bound[i] = &in.rest[i];
  for (const named_value& n : in.named) {
    size_t i = 0;
    while (i < count && parameter_at(b.parameters, i) != n.name) ++i;
    if (i == count) {
      return r.fail("{} has no such named argument; it takes: {}", b.name, b.parameters), false;
    }
    in.bound[i] = &n.is;
  }
  for (size_t i = 0; i < b.required; ++i) {
    if (!in.has(i)) return r.fail("{} needs {}", b.name, parameter_at(b.parameters, i)), false;
  }
  return true;
}

std::string names_of(std::initializer_list<builtins> tables) {
  std::vector<std::string_view> names;
  for (const builtins rows : tables) {
    for (const builtin& b : rows) names.push_back(b.name);
  }
  std::ranges::sort(names);
  std::string all;
  for (const auto name : names) all.append(all.empty() ? "" : ", ").append(name);
  return all;
}

}  // namespace

const builtin* find_in(builtins rows, std::string_view name) {
  const auto at = std::ranges::find(rows, name, &builtin::name);
  return at == rows.end() ? nullptr : &*at;
}

const builtin* find_filter(std::string_view name) {
  for (const builtins rows :
       {text_filters(), list_filters(), choosing_filters(), number_filters()}) {
    if (const builtin* b = find_in(rows, name)) return b;
  }
  return nullptr;
}

const builtin* find_test(std::string_view name) { return find_in(all_tests(), name); }

const builtin* find_method(const value& self, std::string_view name) {
  switch (self.what) {
    case kind::text: {
      const builtin* b = find_in(text_methods(), name);
      return b ? b : find_in(text_checks(), name);
    }
    case kind::list:
      return find_in(list_methods(), name);
    case kind::tuple:
      return find_in(tuple_methods(), name);
    case kind::dict:
      return find_in(dict_methods(), name);
    case kind::object:
      return find_in(object_methods(*self.thing), name);
    default:
      return nullptr;
  }
}

std::string filter_names() {
  return names_of({text_filters(), list_filters(), choosing_filters(), number_filters()});
}
std::string test_names() { return names_of({all_tests()}); }

value invoke(rendering& r, const builtin& b, arguments in) {
  if (!r.ok() || !r.step()) return {};
  if (b.parameters != "*" && !bind(r, b, in)) return {};
  return b.call(r, in);
}

value make_list(rendering& r, std::span<const value> items, bool lazy) {
  sequence* s = r.make_sequence();
  s->lazy = lazy;
  for (const value& v : items) {
    if (!r.ok()) break;
    r.push(*s, v);
  }
  return r.list_of(s);
}

value make_tuple(rendering& r, std::initializer_list<value> items) {
  return value(kind::tuple, make_list(r, {items.begin(), items.size()}).items);
}

std::span<const value> elements(rendering& r, const value& v) {
  if (v.is_sequence()) return v.items->items;
  sequence* s = r.make_sequence();
  if (v.is(kind::dict)) {
    for (const auto& e : v.entries->all()) r.push(*s, e.key);
  } else if (v.is_text()) {
    for (size_t at = 0; at < v.text.size() && r.ok();) {
      const size_t from = at;
      next_point(v.text, at);
      r.push(*s, value(v.text.substr(from, at - from)));
    }
  } else if (!v.is_undefined()) {
    r.fail("{} is not a row of values", type_name(v));
  }
  return s->items;
}

int64_t whole_argument(rendering& r, const arguments& in, size_t i, int64_t otherwise,
                       std::string_view what) {
  if (!in.has(i)) return otherwise;
  if (in.bound[i]->is_whole()) return in.bound[i]->as_whole();
  r.fail("{} must be an integer, not {}", what, type_name(*in.bound[i]));
  return otherwise;
}

std::string_view text_argument(rendering& r, const arguments& in, size_t i,
                               std::string_view otherwise, std::string_view what) {
  if (!in.has(i)) return otherwise;
  if (in.bound[i]->is_text()) return in.bound[i]->text;
  r.fail("{} must be a string, not {}", what, type_name(*in.bound[i]));
  return otherwise;
}

}  // namespace lethe::jinja
