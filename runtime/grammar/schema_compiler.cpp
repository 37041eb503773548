#include "runtime/grammar/schema_compiler.hpp"

#include <charconv>

#include "runtime/grammar/schema.hpp"

namespace lethe {

namespace {

/// What says nothing about validity. `discriminator` only tells readers where to look.
constexpr const char* annotations[] = {"title",      "description", "default",       "examples",
                                       "example",    "$schema",     "$id",           "$comment",
                                       "$defs",      "definitions", "readOnly",      "writeOnly",
                                       "deprecated", "$anchor",     "discriminator", "strict"};

constexpr size_t pointer_bytes_max = 200;

}  // namespace

schema_compiler::schema_compiler(json_slice root, grammar_builder& into)
    : root_(root),
      b_(into),
      json_(b_),
      places_(1, place{}, b_.memory()),
      queue_(b_.memory()),
      rules_(b_.memory()) {}

schema_compiler::expr schema_compiler::compile() {
  auto whole = call(root_, 0);
  while (!queue_.empty() && !b_.failed()) {
    waiting next = queue_.front();
    queue_.pop_front();
    b_.define(next.rule, body(next.schema, next.place));
  }
  return whole;
}

std::string schema_compiler::pointer(uint32_t at) const {
  std::string text;
  for (; at != 0 && text.size() < pointer_bytes_max; at = places_[at].up) {
    const place& p = places_[at];
    text = "/" + (p.name.empty() ? std::to_string(p.index) : std::string(p.name)) + text;
  }
  return (at == 0 ? "#" : "#...") + text;
}

uint32_t schema_compiler::below(uint32_t at, json_slice key) {
  places_.push_back({.up = at, .name = key.raw().substr(1, key.raw().size() - 2)});
  return uint32_t(places_.size() - 1);
}

uint32_t schema_compiler::below(uint32_t at, const char* name) {
  places_.push_back({.up = at, .name = name});
  return uint32_t(places_.size() - 1);
}

uint32_t schema_compiler::below(uint32_t at, uint32_t index) {
  places_.push_back({.up = at, .index = index});
  return uint32_t(places_.size() - 1);
}

/// One rule for each place of the text, however often it is referred to.
schema_compiler::expr schema_compiler::call(json_slice schema, uint32_t at) {
  auto found = rules_.find(schema.raw().data());
  if (found != rules_.end()) return b_.call(found->second);
  uint32_t rule = b_.add_rule(pointer(at));
  if (b_.failed()) return {};
  rules_.emplace(schema.raw().data(), rule);
  queue_.push_back({schema, at, rule});
  return b_.call(rule);
}

std::optional<schema_words> schema_compiler::read_words(json_slice schema, uint32_t at) {
  schema_words words;
  if (!b_.work(schema.raw().size() / 16 + 1)) return {};
  schema.each([&](json_slice key, json_slice value) {
    if (words.take(key, value)) return true;
    for (const char* name : annotations)
      if (key.says(name)) return true;
    auto name = key.raw().substr(1, key.raw().size() - 2);
    if (name.starts_with("x-")) return true;
    refuse(at, "`{}` is not supported", name.substr(0, 40));
    return false;
  });
  if (b_.failed()) return {};
  return words;
}

/// Keywords that can't be combined are refused, not dropped.
bool schema_compiler::only(const schema_words& w, std::initializer_list<word> allowed, word with,
                           uint32_t at) {
  auto other = w.besides(allowed);
  if (other) refuse(at, "`{}` is not supported together with `{}`", w.name(*other), w.name(with));
  return !other;
}

schema_compiler::expr schema_compiler::body(json_slice schema, uint32_t at) {
  if (auto whether = schema.boolean()) return *whether ? json_.value() : b_.nothing();
  if (!schema.is(json_kind::object)) return refuse(at, "a schema is an object, true or false");
  auto words = read_words(schema, at);
  if (!words) return {};
  const auto& w = *words;
  if (w[word::reference]) {
    if (!only(w, {word::reference}, word::reference, at)) return {};
    auto to = resolve(*w[word::reference], at);
    return to ? call(*to, below(at, "$ref")) : expr{};
  }
  if (w[word::constant] || w[word::enumeration]) return enumerated(w, at);
  for (auto which : {word::any_of, word::one_of})
    if (w[which]) return only(w, {which}, which, at) ? any_of(*w[which], which, at) : expr{};
  if (w[word::all_of]) return all_of(schema, w, at);
  return of_types(w, at);
}

std::optional<json_slice> schema_compiler::resolve(json_slice reference, uint32_t at) {
  // Looking from the root costs what the root is long.
  if (!b_.work(root_.raw().size() / 16 + 1)) return {};
  auto text = reference.text(b_.memory());
  if (!text || !text->starts_with("#"))
    return refuse(at, "`$ref` must be a pointer inside the schema, as #/$defs/name"), std::nullopt;
  std::string_view rest = std::string_view(*text).substr(1);
  std::optional<json_slice> now = root_;
  while (now && !rest.empty()) {
    if (rest.front() != '/') return refuse(at, "`$ref` is no pointer"), std::nullopt;
    size_t end = std::min(rest.find('/', 1), rest.size());
    std::pmr::string name(b_.memory());
    for (size_t i = 1; i < end; ++i) {
      bool escaped = rest[i] == '~' && i + 1 < end;
      name += !escaped ? rest[i] : rest[i + 1] == '1' ? '/' : '~';
      i += escaped;
    }
    rest = rest.substr(end);
    if (now->is(json_kind::list)) {
      size_t index = SIZE_MAX, seen = 0;
      std::from_chars(name.data(), name.data() + name.size(), index);
      std::optional<json_slice> item;
      now->each([&](json_slice v) { return seen++ != index || (item = v, false); });
      now = item;
    } else {
      auto found = now->find(std::string_view(name));
      now = found;
    }
  }
  if (!now) refuse(at, "`$ref` leads nowhere");
  return now;
}

schema_compiler::expr schema_compiler::any_of(json_slice list, word which, uint32_t at) {
  uint32_t under = below(at, schema_words::name(which)), i = 0;
  std::pmr::vector<expr> all(b_.memory());
  if (!list.is(json_kind::list) || list.count() == 0)
    return refuse(under, "this must be a list of schemas");
  list.each([&](json_slice item) {
    all.push_back(call(item, below(under, i++)));
    return !b_.failed();
  });
  return b_.either(all);
}

schema_compiler::expr schema_compiler::of_types(const schema_words& w, uint32_t at) {
  const auto& type = w[word::type];
  if (type && type->is(json_kind::text)) return of_type(*type, w, at);
  if (type && type->is(json_kind::list) && type->count() > 0) {
    std::pmr::vector<expr> all(b_.memory());
    type->each([&](json_slice t) {
      all.push_back(of_type(t, w, at));
      return !b_.failed();
    });
    return b_.either(all);
  }
  if (type) return refuse(at, "`type` must be a name or a list of names");
  if (w.any({word::properties, word::required, word::additional, word::least_properties,
             word::most_properties}))
    return object(w, at);
  if (w.any({word::items, word::prefix_items, word::least_items, word::most_items,
             word::unique_items}))
    return list(w, at);
  if (w.any({word::least_length, word::most_length, word::pattern, word::format}))
    return text(w, at);
  if (w.any({word::minimum, word::maximum, word::above, word::below, word::multiple_of}))
    return number(w, at);
  return json_.value();
}

schema_compiler::expr schema_compiler::of_type(json_slice type, const schema_words& w,
                                               uint32_t at) {
  if (type.says("object")) return object(w, at);
  if (type.says("array")) return list(w, at);
  if (type.says("string")) return text(w, at);
  if (type.says("integer")) return integer(w, at);
  if (type.says("number")) return number(w, at);
  if (type.says("boolean")) return json_.boolean();
  if (type.says("null")) return json_.null();
  return refuse(at, "`type` must be object, array, string, integer, number, boolean or null");
}

std::optional<uint32_t> schema_compiler::count(const schema_words& w, word which, uint32_t at) {
  if (!w[which]) return {};
  auto value = w[which]->whole();
  if (!value || *value < 0 || *value > int64_t{limits::grammar_repeat_max}) {
    refuse(at, "`{}` must be an integer, 0 to {}", w.name(which), limits::grammar_repeat_max);
    return {};
  }
  return uint32_t(*value);
}

grammar_builder::expr schema_rules(json_slice schema, grammar_builder& into) {
  if (schema.raw().size() <= limits::grammar_bytes_max)
    return schema_compiler(schema, into).compile();
  into.fail_with(fail("schema: {} bytes; at most {} are read", schema.raw().size(),
                      limits::grammar_bytes_max));
  return {};
}

result<grammar> schema_grammar(json_slice schema, std::pmr::memory_resource* memory) {
  grammar_builder b(memory);
  uint32_t root = b.add_rule("#");
  b.define(root, schema_rules(schema, b));
  auto made = b.build(root);
  if (made || made.why().text.starts_with("schema")) return made;
  return fail("schema: {}", made.why().text);
}

result<grammar> schema_grammar(std::string_view text, std::pmr::memory_resource* memory) {
  auto checked = check_json(text);
  if (!checked) return fail("schema: {}", checked.why().text);
  return schema_grammar(*checked, memory);
}

}  // namespace lethe
