#include <algorithm>

#include "runtime/base/utf8.hpp"
#include "runtime/grammar/schema_compiler.hpp"

namespace lethe {

using expr = grammar_builder::expr;

namespace {

// Longer names are told apart by this many characters; no other key may begin with so many.
constexpr size_t key_characters_max = 100;
constexpr uint32_t all_of_depth_max = 16;

}  // namespace

schema_compiler::object_parts schema_compiler::no_parts() const {
  auto* m = b_.memory();
  return {std::pmr::vector<property>(m), std::pmr::map<std::pmr::string, uint32_t>(m),
          std::pmr::vector<std::pmr::string>(m)};
}

expr schema_compiler::object(const schema_words& w, uint32_t at) {
  auto parts = no_parts();
  if (!collect_words(w, at, parts)) return {};
  auto least = count(w, word::least_properties, at), most = count(w, word::most_properties, at);
  if (!least && !most) return joined(parts, at);
  if (!parts.properties.empty() || !parts.required.empty() || parts.closed)
    return refuse(at, "`minProperties` and `maxProperties` are not supported together with names");
  if (most && *most < least.value_or(0)) return b_.nothing();
  auto part = json_.member(json_.text(), parts.others.value_or(json_.value()));
  return json_.around(
      '{', json_.row(part, least.value_or(0), most.value_or(grammar_builder::no_end)), '}');
}

bool schema_compiler::collect_words(const schema_words& w, uint32_t at, object_parts& into) {
  if (w[word::properties]) {
    uint32_t under = below(at, "properties");
    if (!w[word::properties]->is(json_kind::object))
      return refuse(under, "this must be an object of schemas"), false;
    w[word::properties]->each([&](json_slice key, json_slice schema) {
      auto name = *key.text(b_.memory());
      if (!into.by_name.emplace(name, uint32_t(into.properties.size())).second)
        return refuse(below(under, key), "the property is given twice"), false;
      into.properties.push_back({std::move(name), call(schema, below(under, key))});
      return !b_.failed();
    });
  }
  if (w[word::required]) {
    bool good = w[word::required]->is(json_kind::list);
    if (good)
      good = w[word::required]->each([&](json_slice name) {
        auto text = name.text(b_.memory());
        if (text) into.required.push_back(*std::move(text));
        return text.has_value();
      });
    if (!good) return refuse(below(at, "required"), "this must be a list of names"), false;
  }
  if (const auto& others = w[word::additional]) {
    auto whether = others->boolean();
    into.closed |= whether == false;
    into.opened |= whether != false;
    if (whether != false) into.others = call(*others, below(at, "additionalProperties"));
  }
  return !b_.failed();
}

/// allOf of one schema is that schema; of several, objects whose parts are put together.
expr schema_compiler::all_of(json_slice schema, const schema_words& w, uint32_t at) {
  const auto& list = *w[word::all_of];
  uint32_t under = below(at, "allOf");
  if (!list.is(json_kind::list) || list.count() == 0)
    return refuse(under, "this must be a list of schemas");
  if (list.count() == 1 && !w.besides({word::all_of})) {
    expr only;
    list.each([&](json_slice item) { return only = call(item, below(under, 0u)), true; });
    return only;
  }
  auto parts = no_parts();
  if (!collect(schema, at, parts, 0)) return {};
  return joined(parts, at);
}

bool schema_compiler::collect(json_slice schema, uint32_t at, object_parts& into, uint32_t depth) {
  if (depth == all_of_depth_max) return refuse(at, "allOf is nested too deep"), false;
  if (!schema.is(json_kind::object))
    return refuse(at, "allOf is supported for objects only"), false;
  auto words = read_words(schema, at);
  if (!words) return false;
  const auto& w = *words;
  if (w[word::reference]) {
    if (!only(w, {word::reference}, word::reference, at)) return false;
    auto to = resolve(*w[word::reference], at);
    return to && collect(*to, below(at, "$ref"), into, depth + 1);
  }
  if (!only(w, {word::type, word::properties, word::required, word::additional, word::all_of},
            word::all_of, at))
    return false;
  if (w[word::type] && !w[word::type]->says("object"))
    return refuse(at, "allOf is supported for objects only"), false;
  if (!collect_words(w, at, into)) return false;
  if (!w[word::all_of]) return true;
  uint32_t under = below(at, "allOf"), i = 0;
  if (!w[word::all_of]->is(json_kind::list))
    return refuse(under, "this must be a list of schemas"), false;
  return w[word::all_of]->each(
      [&](json_slice item) { return collect(item, below(under, i++), into, depth + 1); });
}

bool schema_compiler::add_required(uint32_t at, object_parts& parts) {
  bool open = !parts.closed && (parts.opened || parts.properties.empty());
  for (const auto& name : parts.required) {
    auto found = parts.by_name.find(name);
    if (found != parts.by_name.end()) {
      parts.properties[found->second].required = true;
      continue;
    }
    if (!open) return refuse(below(at, "required"), "a name that is not among `properties`"), false;
    parts.by_name.emplace(name, uint32_t(parts.properties.size()));
    parts.properties.push_back({name, parts.others ? *parts.others : json_.value(), true});
  }
  if (open && !parts.others) parts.others = json_.value();
  if (!open) parts.others.reset();
  return true;
}

expr schema_compiler::joined(object_parts& parts, uint32_t at) {
  if (!add_required(at, parts)) return {};
  expr others;
  if (parts.others) others = json_.member(other_key(parts), *parts.others);
  if (parts.properties.empty())
    return json_.around('{', parts.others ? json_.row(others, 0, grammar_builder::no_end) : expr{},
                        '}');
  return json_.around('{', members(parts, others), '}');
}

/// Whichever of the properties comes first has no comma before it. What may follow the i-th is a
/// rule, so that all this stays as long as the schema.
expr schema_compiler::members(const object_parts& parts, expr others) {
  const auto& all = parts.properties;
  auto part = [&](const property& p) {
    std::pmr::string key(b_.memory());
    (key += '"').append(json_.spelled(p.name)) += '"';
    return json_.member(b_.literal(key), p.value);
  };
  bool open = parts.others.has_value();
  expr rest = open ? b_.sequence({b_.repeat(json_.then(others), 0), json_.blank()}) : json_.blank();
  auto required = std::ranges::find_if(all, &property::required);
  // Only behind a possible first one the rest is needed on its own.
  size_t firsts = std::min(size_t(required - all.begin()) + 1, all.size());
  std::pmr::vector<expr> ways(b_.memory());
  if (required == all.end()) {
    ways.push_back(expr{});
    if (open) ways.push_back(b_.sequence({others, rest}));
  }
  for (size_t i = all.size(); i-- > 0 && !b_.failed();) {
    auto own = part(all[i]);
    if (i < firsts) ways.push_back(b_.sequence({own, rest}));
    if (i == 0) break;
    uint32_t rule = b_.add_rule("more properties");
    if (b_.failed()) return {};
    auto more = json_.then(own);
    b_.define(rule, b_.sequence({all[i].required ? more : b_.maybe(more), rest}));
    rest = b_.call(rule);
  }
  return b_.either(ways);
}

/// Any key but the named ones. Until it differs from all of them it has no escapes, which could
/// spell one of them in another way.
expr schema_compiler::other_key(const object_parts& parts) {
  if (parts.properties.empty()) return json_.text();
  std::pmr::vector<std::pmr::u32string> names(b_.memory());
  for (const auto& p : parts.properties) {
    std::pmr::u32string name(b_.memory());
    for (size_t i = 0; i < p.name.size() && name.size() < key_characters_max;) {
      auto c = utf8::at(p.name, i);
      name += c.code;
      i += c.length;
    }
    names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  std::pmr::vector<std::u32string_view> views(names.begin(), names.end(), b_.memory());
  return json_.text_of(other_text(views, 0));
}

/// The names agree before `at`; they are sorted. Recursion is bounded by key_characters_max.
expr schema_compiler::other_text(std::span<const std::u32string_view> names, size_t at) {
  if (at == key_characters_max || !b_.work(names.size() + 1)) return b_.nothing();
  std::pmr::vector<expr> ways(b_.memory());
  if (names.front().size() > at) ways.push_back({});
  while (!names.empty() && names.front().size() == at) names = names.subspan(1);
  codepoint_set other(b_.memory(), {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, codepoint_set::last}});
  codepoint_set taken(b_.memory());
  while (!names.empty() && !b_.failed()) {
    char32_t c = names.front()[at];
    size_t same = 1;
    while (same < names.size() && names[same][at] == c) ++same;
    taken.add(c, c);
    codepoint_set one(b_.memory(), {{uint32_t(c), uint32_t(c)}});
    ways.push_back(b_.sequence({json_.character(one), other_text(names.first(same), at + 1)}));
    names = names.subspan(same);
  }
  auto differs = b_.character(other.both(taken.inverse()));
  ways.push_back(b_.sequence({differs, b_.repeat(json_.text_character(), 0)}));
  return b_.either(ways);
}

expr schema_compiler::list(const schema_words& w, uint32_t at) {
  if (w[word::unique_items] && w[word::unique_items]->boolean() != false)
    return refuse(at, "`uniqueItems` is not supported");
  std::pmr::vector<expr> first(b_.memory());
  if (w[word::prefix_items]) {
    uint32_t under = below(at, "prefixItems"), i = 0;
    if (!w[word::prefix_items]->is(json_kind::list))
      return refuse(under, "this must be a list of schemas");
    w[word::prefix_items]->each([&](json_slice item) {
      first.push_back(call(item, below(under, i++)));
      return !b_.failed();
    });
  }
  uint32_t least = count(w, word::least_items, at).value_or(0);
  auto asked = count(w, word::most_items, at);
  uint32_t most = asked.value_or(grammar_builder::no_end);
  if (!w[word::items] && !first.empty()) most = std::min(most, uint32_t(first.size()));
  if (b_.failed()) return {};
  if (most < least) return b_.nothing();
  auto items = w[word::items];
  if (items && items->is(json_kind::list))
    return refuse(at, "`items` as a list is not supported; use `prefixItems`");
  expr item = items ? call(*items, below(at, "items")) : json_.value();
  if (first.empty()) return json_.around('[', json_.row(item, least, most), ']');
  uint32_t fixed = std::min(uint32_t(first.size()), most);
  uint32_t more = most == grammar_builder::no_end ? most : most - fixed;
  expr rest = b_.repeat(json_.then(item), least > fixed ? least - fixed : 0, more);
  for (uint32_t i = fixed; i-- > 0 && !b_.failed();) {
    rest = b_.sequence({i == 0 ? first[0] : json_.then(first[i]), rest});
    if (i >= least) rest = b_.maybe(rest);
    uint32_t rule = b_.add_rule("more items");
    if (b_.failed()) return {};
    b_.define(rule, rest);
    rest = b_.call(rule);
  }
  return json_.around('[', b_.sequence({rest, json_.blank()}), ']');
}

}  // namespace lethe
