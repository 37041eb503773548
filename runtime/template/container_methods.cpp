#include <algorithm>

#include "runtime/template/builtin.hpp"
#include "runtime/template/operators.hpp"

namespace lethe::jinja {
namespace {

std::pmr::vector<value>& row(const arguments& in) { return in.self.items->items; }

value append(rendering& r, const arguments& in) {
  r.push(*in.self.items, *in.bound[0]);
  return none_value();
}

value extend(rendering& r, const arguments& in) {
  const auto items = elements(r, make_list(r, elements(r, *in.bound[0])));
  for (size_t i = 0; i < items.size() && r.ok(); ++i) r.push(*in.self.items, items[i]);
  return none_value();
}

value insert(rendering& r, const arguments& in) {
  const auto size = int64_t(row(in).size());
  int64_t at = whole_argument(r, in, 0, 0, "insert's index");
  at = std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  if (!r.step(row(in).size() * sizeof(value)) || !r.take(2 * sizeof(value))) return {};
  row(in).insert(row(in).begin() + at, *in.bound[1]);
  return none_value();
}

value pop(rendering& r, const arguments& in) {
  const auto size = int64_t(row(in).size());
  int64_t at = whole_argument(r, in, 0, -1, "pop's index");
  if (at < 0) at += size;
  if (at < 0 || at >= size) return r.fail("pop of an element that the list does not have");
  const value taken = row(in)[size_t(at)];
  r.step(row(in).size() * sizeof(value));
  row(in).erase(row(in).begin() + at);
  return taken;
}

/// The first equal element's position, or the size.
size_t position_of(rendering& r, const arguments& in) {
  size_t i = 0;
  while (i < row(in).size() && r.ok() && !equals(r, row(in)[i], *in.bound[0])) ++i;
  return i;
}

value remove(rendering& r, const arguments& in) {
  const size_t at = position_of(r, in);
  if (at >= row(in).size()) return r.fail("remove of a value that the list does not hold");
  row(in).erase(row(in).begin() + int64_t(at));
  return none_value();
}

value index(rendering& r, const arguments& in) {
  const size_t at = position_of(r, in);
  if (at >= row(in).size()) return r.fail("index of a value that the list does not hold");
  return value(int64_t(at));
}

value count(rendering& r, const arguments& in) {
  int64_t found = 0;
  for (size_t i = 0; i < row(in).size() && r.ok(); ++i)
    found += equals(r, row(in)[i], *in.bound[0]);
  return value(found);
}

value reverse(rendering& r, const arguments& in) {
  r.step(row(in).size() * sizeof(value));
  std::ranges::reverse(row(in));
  return none_value();
}

value sort(rendering& r, const arguments& in) {
  const arguments by{.self = in.self, .named = in.named};
  const value sorted = invoke(r, *find_filter("sort"), by);
  if (r.ok()) row(in) = sorted.items->items;
  return none_value();
}

value clear_list(rendering&, const arguments& in) {
  row(in).clear();
  return none_value();
}
value copy_list(rendering& r, const arguments& in) { return make_list(r, row(in)); }

// Dictionaries.

value items(rendering& r, const arguments& in) {
  sequence* all = r.make_sequence();
  for (const auto& [key, held] : in.self.entries->all()) {
    if (!r.ok()) break;
    r.push(*all, make_tuple(r, {key, held}));
  }
  return r.list_of(all);
}

value keys(rendering& r, const arguments& in) { return make_list(r, elements(r, in.self)); }

value values(rendering& r, const arguments& in) {
  sequence* all = r.make_sequence();
  for (const auto& e : in.self.entries->all()) r.push(*all, e.held);
  return r.list_of(all);
}

value get(rendering& r, const arguments& in) {
  const value& key = *in.bound[0];
  if (!r.step(key.is_text() ? key.text.size() : 0)) return {};
  const value* held = in.self.entries->find(key);
  return held ? *held : in.at(1, none_value());
}

value update(rendering& r, const arguments& in) {
  const auto put_all = [&](const value& from) {
    const auto all = elements(r, items(r, {.self = from}));
    for (const value& pair : all) {
      r.put(*in.self.entries, pair.items->items[0], pair.items->items[1]);
    }
  };
  for (const value& from : in.rest) {
    if (!from.is(kind::dict)) return r.fail("update of a dictionary with {}", type_name(from));
    put_all(from);
  }
  for (const auto& [name, v] : in.named) r.put(*in.self.entries, value(name), v);
  return none_value();
}

value pop_key(rendering& r, const arguments& in) {
  const value* held = in.self.entries->find(*in.bound[0]);
  if (!held && in.has(1)) return *in.bound[1];
  if (!held) return r.fail("pop of a key that the dictionary does not have");
  const value taken = *held;
  r.step(in.self.entries->size() * limits::template_bytes_per_step);
  r.take(in.self.entries->size() * 2 * sizeof(value));
  if (r.ok()) in.self.entries->erase(*in.bound[0]);
  return taken;
}

value setdefault(rendering& r, const arguments& in) {
  if (const value* held = in.self.entries->find(*in.bound[0])) return *held;
  r.put(*in.self.entries, *in.bound[0], in.at(1, none_value()));
  return in.at(1, none_value());
}

value copy_dict(rendering& r, const arguments& in) {
  dictionary* copy = r.make_dictionary();
  for (const auto& [key, held] : in.self.entries->all()) r.put(*copy, key, held);
  return value(copy);
}

value clear_dict(rendering&, const arguments& in) {
  in.self.entries->clear();
  return none_value();
}

}  // namespace

builtins list_methods() {
  static constexpr builtin rows[] = {
      {"append", append, "object", 1},
      {"extend", extend, "iterable", 1},
      {"insert", insert, "index object", 2},
      {"pop", pop, "index"},
      {"remove", remove, "value", 1},
      {"index", index, "value", 1},
      {"count", count, "value", 1},
      {"reverse", reverse, ""},
      {"sort", sort, "*"},
      {"clear", clear_list, ""},
      {"copy", copy_list, ""},
  };
  return rows;
}

builtins tuple_methods() {
  static constexpr builtin rows[] = {{"index", index, "value", 1}, {"count", count, "value", 1}};
  return rows;
}

builtins dict_methods() {
  static constexpr builtin rows[] = {
      {"items", items, ""},
      {"keys", keys, ""},
      {"values", values, ""},
      {"get", get, "key default", 1},
      {"update", update, "*"},
      {"pop", pop_key, "key default", 1},
      {"setdefault", setdefault, "key default", 1},
      {"copy", copy_dict, ""},
      {"clear", clear_dict, ""},
  };
  return rows;
}

}  // namespace lethe::jinja
