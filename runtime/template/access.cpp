#include <algorithm>
#include <optional>

#include "runtime/template/builtin.hpp"
#include "runtime/template/operators.hpp"
#include "runtime/template/unicode.hpp"

namespace lethe::jinja {
namespace {

value loop_attribute(const loop_object& loop, std::string_view name) {
  const auto index = int64_t(loop.index), length = int64_t(loop.items.size());
  const auto neighbour = [&](int64_t i) {
    return i >= 0 && i < length ? loop.items[size_t(i)] : value();
  };
  if (name == "index") return value(index + 1);
  if (name == "index0") return value(index);
  if (name == "revindex") return value(length - index);
  if (name == "revindex0") return value(length - index - 1);
  if (name == "first") return value(index == 0);
  if (name == "last") return value(index + 1 == length);
  if (name == "length") return value(length);
  if (name == "previtem") return neighbour(index - 1);
  if (name == "nextitem") return neighbour(index + 1);
  if (name == "depth") return value(loop.depth);
  if (name == "depth0") return value(loop.depth - 1);
  return {};
}

value object_attribute(const object& o, std::string_view name) {
  switch (o.what) {
    case object::form::space: {
      const value* held = static_cast<const space_object&>(o).held->find(name);
      return held ? *held : value();
    }
    case object::form::loop:
      return loop_attribute(static_cast<const loop_object&>(o), name);
    case object::form::macro:
      if (name == "name") return value(static_cast<const macro_object&>(o).source->name);
      return {};
    case object::form::cycler: {
      const auto& c = static_cast<const cycler_object&>(o);
      return name == "current" && !c.items.empty() ? c.items[c.index] : value();
    }
    default:
      return {};
  }
}

std::optional<size_t> position(int64_t index, size_t size) {
  if (index < 0) index += int64_t(size);
  if (index < 0 || index >= int64_t(size)) return {};
  return size_t(index);
}

value element(rendering& r, const value& v, int64_t index) {
  if (v.is_sequence()) {
    const auto at = position(index, v.items->items.size());
    return at ? v.items->items[*at] : value();
  }
  if (!r.step(v.text.size())) return {};
  const auto at = position(index, point_count(v.text));
  if (!at) return {};
  const size_t from = point_offset(v.text, *at);
  size_t to = from;
  next_point(v.text, to);
  return value(v.text.substr(from, to - from));
}

struct cut_range {
  int64_t from, to, by;
};

/// Python's slice.indices().
std::optional<cut_range> cut_of(rendering& r, const value& from, const value& to, const value& by,
                                int64_t size) {
  for (const value* v : {&from, &to, &by}) {
    if (v->is(kind::none) || v->is_whole()) continue;
    r.fail("a slice's bound is {}", type_name(*v));
    return {};
  }
  const int64_t step = by.is(kind::none) ? 1 : by.as_whole();
  if (step == 0) return r.fail("a slice's step is 0"), std::nullopt;
  const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
  const auto bound = [&](const value& v, int64_t otherwise) {
    if (v.is(kind::none)) return otherwise;
    const int64_t i = v.as_whole();
    return i < 0 ? std::max(i + size, low) : std::min(i, high);
  };
  return cut_range{bound(from, step < 0 ? high : low), bound(to, step < 0 ? low : high), step};
}

value slice_text(rendering& r, std::string_view text, const cut_range& cut) {
  if (cut.by == 1) {
    if (cut.from >= cut.to) return value(std::string_view());
    const size_t from = point_offset(text, size_t(cut.from));
    const size_t size = point_offset(text.substr(from), size_t(cut.to - cut.from));
    return value(text.substr(from, size));
  }
  std::pmr::vector<std::string_view> points(r.memory());
  if (!r.take(2 * sizeof(std::string_view) * text.size())) return {};
  for (size_t at = 0; at < text.size();) {
    const size_t from = at;
    next_point(text, at);
    points.push_back(text.substr(from, at - from));
  }
  text_sink out(r);
  for (int64_t i = cut.from; (cut.by > 0 ? i < cut.to : i > cut.to) && r.ok();) {
    out.append(points[size_t(i)]);
    if (__builtin_add_overflow(i, cut.by, &i)) break;
  }
  return value(out.view());
}

}  // namespace

value attribute(rendering& r, const value& v, std::string_view name) {
  if (const builtin* method = find_method(v, name)) return value(r.make<method_object>(method, v));
  if (v.is(kind::dict)) {
    const value* held = v.entries->find(name);
    return held ? *held : value();
  }
  if (v.is(kind::tuple) && v.items->group && v.items->items.size() == 2) {
    if (name == "grouper") return v.items->items[0];
    if (name == "list") return v.items->items[1];
  }
  return v.is(kind::object) ? object_attribute(*v.thing, name) : value();
}

value item(rendering& r, const value& v, const value& key) {
  if (v.is(kind::dict) && r.step(key.is_text() ? key.text.size() : 0)) {
    if (const value* held = v.entries->find(key)) return *held;
  }
  if ((v.is_sequence() || v.is_text()) && key.is_whole()) return element(r, v, key.as_whole());
  return key.is_text() ? attribute(r, v, key.text) : value();
}

value slice(rendering& r, const value& v, const value& from, const value& to, const value& by) {
  if (!v.is_text() && !v.is_sequence()) return r.fail("a slice of {}", type_name(v));
  if (v.is_text() && !r.step(v.text.size())) return {};
  const size_t size = v.is_text() ? point_count(v.text) : v.items->items.size();
  const auto cut = cut_of(r, from, to, by, int64_t(size));
  if (!cut) return {};
  if (v.is_text()) return slice_text(r, v.text, *cut);
  sequence* s = r.make_sequence();
  for (int64_t i = cut->from; (cut->by > 0 ? i < cut->to : i > cut->to) && r.ok();) {
    r.push(*s, v.items->items[size_t(i)]);
    if (__builtin_add_overflow(i, cut->by, &i)) break;
  }
  return value(v.what, s);
}

}  // namespace lethe::jinja
