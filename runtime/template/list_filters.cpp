#include <algorithm>
#include <utility>

#include "runtime/template/builtin.hpp"
#include "runtime/template/operators.hpp"
#include "runtime/template/unicode.hpp"
#include "runtime/template/words.hpp"

namespace lethe::jinja {
namespace {

value length(rendering& r, const arguments& in) {
  if (in.self.is_text())
    return r.step(in.self.text.size()), value(int64_t(point_count(in.self.text)));
  if (in.self.is_sequence()) return value(int64_t(in.self.items->items.size()));
  if (in.self.is(kind::dict)) return value(int64_t(in.self.entries->size()));
  return in.self.is_undefined() ? value(int64_t{0}) : r.fail("length of {}", type_name(in.self));
}

value otherwise(rendering&, const arguments& in) {
  const bool missing = in.self.is_undefined() || (in.flag(1, false) && !truth(in.self));
  return missing ? in.at(0, value(std::string_view())) : in.self;
}

value first(rendering& r, const arguments& in) {
  if (in.self.is_text()) return item(r, in.self, value(int64_t{0}));
  const auto all = elements(r, in.self);
  return all.empty() ? value() : all.front();
}

value last(rendering& r, const arguments& in) {
  if (in.self.is_text()) return item(r, in.self, value(int64_t{-1}));
  const auto all = elements(r, in.self);
  return all.empty() ? value() : all.back();
}

value join(rendering& r, const arguments& in) {
  const auto between = in.has(0) ? as_text(r, *in.bound[0]) : std::string_view();
  text_sink out(r);
  bool first_one = true;
  for (const value& v : elements(r, in.self)) {
    if (!r.ok()) break;
    if (!std::exchange(first_one, false)) out.append(between);
    append_text(r, out, in.has(1) ? deep_item(r, v, *in.bound[1]) : v);
  }
  return value(out.view());
}

value list(rendering& r, const arguments& in) { return make_list(r, elements(r, in.self)); }

value reverse(rendering& r, const arguments& in) {
  const value all = make_list(r, elements(r, in.self), !in.self.is_text());
  std::ranges::reverse(all.items->items);
  if (!in.self.is_text()) return all;
  const value row[] = {all};
  const value nothing{std::string_view()};
  return invoke(r, *find_method(nothing, "join"), {.self = nothing, .rest = row});
}

value items(rendering& r, const arguments& in) {
  if (in.self.is_undefined()) return make_list(r, {});
  if (!in.self.is(kind::dict)) return r.fail("items of {}", type_name(in.self));
  const value all = invoke(r, *find_method(in.self, "items"), {.self = in.self});
  return make_list(r, elements(r, all), true);
}

struct ordering {
  value by;       // attributes, with commas between
  value missing;  // what stands for an attribute that is not there
  bool exact = false, reverses = false;
  bool ties = false;  // equal values need no order: the sort filter compares lists of keys
};

/// What a value is ordered by: attributes, lower case unless told.
value sort_key(rendering& r, const value& v, const ordering& how) {
  const value& by = how.by;
  const auto folded = [&](const value& part) {
    return how.exact || !part.is_text() ? part : value(to_lower(r, part.text));
  };
  if (by.is_undefined() || by.is(kind::none)) return folded(v);
  if (!by.is_text() || by.text.find(',') == by.text.npos)
    return folded(deep_item(r, v, by, how.missing));
  sequence* keys = r.make_sequence();
  auto rest = by.text;
  for (bool more = true; more && r.ok();) {
    const size_t comma = rest.find(',');
    more = comma != rest.npos;
    const value name(stripped(r, rest.substr(0, comma), {}, true, true));
    r.push(*keys, folded(deep_item(r, v, name)));
    if (more) rest.remove_prefix(comma + 1);
  }
  return value(kind::tuple, keys);
}

value sorted(rendering& r, std::span<const value> all, const ordering& how) {
  struct keyed {
    value key, v;
  };
  std::pmr::vector<keyed> order(r.memory());
  if (!r.take(4 * sizeof(keyed) * all.size())) return {};
  for (const value& v : all) {
    if (!r.ok()) return {};
    order.push_back({sort_key(r, v, how), v});
  }
  // A merge sort of our own making: it ends whatever `before` says, also after a failure.
  const auto less = [&](const keyed& a, const keyed& b) {
    if (!r.ok() || (how.ties && equals(r, a.key, b.key))) return false;
    return how.reverses ? before(r, b.key, a.key) : before(r, a.key, b.key);
  };
  std::pmr::vector<keyed> other(order.begin(), order.end(), r.memory());
  for (size_t width = 1; width < order.size() && r.ok(); width *= 2) {
    for (size_t from = 0; from < order.size(); from += 2 * width) {
      const auto at = [&](size_t i) { return order.begin() + int64_t(std::min(i, order.size())); };
      std::merge(at(from), at(from + width), at(from + width), at(from + 2 * width),
                 other.begin() + int64_t(from), less);
    }
    order.swap(other);
  }
  sequence* s = r.make_sequence();
  for (const keyed& k : order) r.push(*s, k.v);
  return r.list_of(s);
}

value sort(rendering& r, const arguments& in) {
  const ordering how{
      .by = in.at(2), .exact = in.flag(1, false), .reverses = in.flag(0, false), .ties = true};
  return sorted(r, elements(r, in.self), how);
}

value dictsort(rendering& r, const arguments& in) {
  if (!in.self.is(kind::dict)) return r.fail("dictsort of {}", type_name(in.self));
  const auto by = text_argument(r, in, 1, "key", "dictsort's by");
  if (by != "key" && by != "value") return r.fail("dictsort: by must be key or value");
  const value all = invoke(r, *find_method(in.self, "items"), {.self = in.self});
  const value part(int64_t{by == "value"});
  return sorted(r, elements(r, all), {part, {}, in.flag(0, false), in.flag(2, false)});
}

value unique(rendering& r, const arguments& in) {
  sequence* s = r.make_sequence();
  s->lazy = true;
  dictionary* seen = r.make_dictionary();
  bool undefined_seen = false;
  for (const value& v : elements(r, in.self)) {
    const value key = sort_key(r, v, {.by = in.at(1), .exact = in.flag(0, false)});
    if (!r.ok()) break;
    if (key.is_undefined()) {  // the one key that a dictionary does not take
      if (!std::exchange(undefined_seen, true)) r.push(*s, v);
      continue;
    }
    if (dictionary::can_key(key) && seen->find(key)) continue;
    r.put(*seen, key, v);
    r.push(*s, v);
  }
  return r.list_of(s);
}

value batch(rendering& r, const arguments& in) {
  const int64_t size = whole_argument(r, in, 0, 1, "batch's size");
  if (size < 1 || size > limits::template_range_max) return r.fail("batch: size is out of range");
  sequence* rows = r.make_sequence();
  rows->lazy = true;
  sequence* row = nullptr;
  for (const value& v : elements(r, in.self)) {
    if (!r.ok()) return {};
    if (!row) r.push(*rows, r.list_of(row = r.make_sequence()));
    r.push(*row, v);
    if (int64_t(row->items.size()) == size) row = nullptr;
  }
  const bool fills = row && in.has(1) && !in.bound[1]->is(kind::none);
  while (fills && r.ok() && int64_t(row->items.size()) < size) r.push(*row, *in.bound[1]);
  return r.list_of(rows);
}

value slices(rendering& r, const arguments& in) {
  const int64_t count = whole_argument(r, in, 0, 1, "slice's count");
  if (count < 1 || count > limits::template_range_max)
    return r.fail("slice: count is out of range");
  const auto all = elements(r, make_list(r, elements(r, in.self)));
  const size_t each = all.size() / size_t(count), longer = all.size() % size_t(count);
  const bool fills = in.has(1) && !in.bound[1]->is(kind::none);
  sequence* rows = r.make_sequence();
  rows->lazy = true;
  for (size_t i = 0, from = 0; i < size_t(count) && r.ok(); ++i) {
    const size_t size = each + (i < longer);
    const value row = make_list(r, all.subspan(from, size));
    from += size;
    if (fills && i >= longer) r.push(*row.items, *in.bound[1]);
    r.push(*rows, row);
  }
  return r.list_of(rows);
}

value groupby(rendering& r, const arguments& in) {
  const value by = *in.bound[0];
  const bool exact = in.flag(2, false);
  const value missing = in.at(1).is(kind::none) ? value() : in.at(1);
  const value all = sorted(r, elements(r, in.self), {by, missing, exact, false});
  if (!r.ok()) return {};
  sequence* groups = r.make_sequence();
  value last_key;
  sequence* group = nullptr;
  for (const value& v : elements(r, all)) {
    const value shown = deep_item(r, v, by, missing);
    const value key = exact || !shown.is_text() ? shown : value(to_lower(r, shown.text));
    if (!group || !equals(r, key, last_key)) {
      group = r.make_sequence();
      const value pair = make_tuple(r, {shown, r.list_of(group)});
      pair.items->group = true;
      r.push(*groups, pair);
      last_key = key;
    }
    r.push(*group, v);
    if (!r.ok()) break;
  }
  return r.list_of(groups);
}

}  // namespace

value deep_item(rendering& r, value v, const value& path, const value& otherwise) {
  const auto found = [&](const value& one) { return one.is_undefined() ? otherwise : one; };
  if (v.is_undefined()) return r.fail("an attribute of an undefined value");
  if (!path.is_text()) return found(item(r, v, path));
  auto rest = path.text;
  for (bool more = true; more && r.ok() && r.step();) {
    const size_t dot = rest.find('.');
    const auto step = rest.substr(0, dot);
    more = dot != rest.npos;
    if (more) rest.remove_prefix(dot + 1);
    const bool number =
        !step.empty() && step.size() < 10 && step.find_first_not_of("0123456789") == step.npos;
    int64_t index = 0;
    for (const char c : number ? step : std::string_view()) index = 10 * index + (c - '0');
    if (v.is_undefined()) return r.fail("an attribute of an undefined value");
    v = found(number ? item(r, v, value(index)) : item(r, v, value(step)));
  }
  return v;
}

builtins list_filters() {
  static constexpr builtin rows[] = {
      {"length", length, ""},
      {"count", length, ""},
      {"default", otherwise, "default_value boolean"},
      {"d", otherwise, "default_value boolean"},
      {"first", first, ""},
      {"last", last, ""},
      {"join", join, "d attribute"},
      {"list", list, ""},
      {"reverse", reverse, ""},
      {"items", items, ""},
      {"sort", sort, "reverse case_sensitive attribute"},
      {"dictsort", dictsort, "case_sensitive by reverse"},
      {"unique", unique, "case_sensitive attribute"},
      {"batch", batch, "linecount fill_with", 1},
      {"slice", slices, "slices fill_with", 1},
      {"groupby", groupby, "attribute default case_sensitive", 1},
  };
  return rows;
}

}  // namespace lethe::jinja
