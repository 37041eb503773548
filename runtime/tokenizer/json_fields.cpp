#include "runtime/tokenizer/json_fields.hpp"

namespace lethe::json {
namespace {

error absent(std::string_view key) { return fail("\"{}\" is missing", key); }
error not_a(std::string_view kind, std::string_view key) {
  return fail("\"{}\" is not {}", key, kind);
}

template <class T>
result<T> as(element e, std::string_view kind, std::string_view name) {
  T value;
  if (e.get(value)) return not_a(kind, name);
  return value;
}

}  // namespace

std::optional<element> find(object o, std::string_view key) {
  element e;
  if (o.at_key(key).get(e) || e.is_null()) return {};
  return e;
}

result<object> as_object(element e, std::string_view name) {
  return as<object>(e, "an object", name);
}
result<array> as_array(element e, std::string_view name) { return as<array>(e, "an array", name); }
result<std::string_view> as_text(element e, std::string_view name) {
  return as<std::string_view>(e, "a text", name);
}

result<std::string_view> text(object o, std::string_view key) {
  auto e = find(o, key);
  if (!e) return absent(key);
  return as_text(*e, key);
}

result<std::string_view> text(object o, std::string_view key, std::string_view otherwise) {
  auto e = find(o, key);
  if (!e) return otherwise;
  return as_text(*e, key);
}

result<std::optional<bool>> flag(object o, std::string_view key) {
  auto e = find(o, key);
  if (!e) return std::optional<bool>();
  auto value = as<bool>(*e, "true or false", key);
  if (!value) return value.why();
  return std::optional(*value);
}

result<bool> flag(object o, std::string_view key, bool otherwise) {
  auto value = flag(o, key);
  if (!value) return value.why();
  return value->value_or(otherwise);
}

result<uint32_t> number(object o, std::string_view key) {
  auto e = find(o, key);
  if (!e) return absent(key);
  auto value = as<uint64_t>(*e, "a whole number", key);
  if (!value) return value.why();
  if (*value > UINT32_MAX) return fail("\"{}\" is more than 32 bits hold", key);
  return uint32_t(*value);
}

result<uint32_t> number(object o, std::string_view key, uint32_t otherwise) {
  if (!find(o, key)) return otherwise;
  return number(o, key);
}

result<array> list(object o, std::string_view key) {
  auto e = find(o, key);
  if (!e) return absent(key);
  return as_array(*e, key);
}

}  // namespace lethe::json
