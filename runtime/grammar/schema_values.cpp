#include <charconv>
#include <cmath>

#include "runtime/grammar/pattern_rules.hpp"
#include "runtime/grammar/schema_compiler.hpp"

namespace lethe {

using expr = grammar_builder::expr;

namespace {

bool is_of_type(json_slice value, json_slice type) {
  switch (value.kind()) {
    case json_kind::null:
      return type.says("null");
    case json_kind::boolean:
      return type.says("boolean");
    case json_kind::text:
      return type.says("string");
    case json_kind::list:
      return type.says("array");
    case json_kind::object:
      return type.says("object");
    case json_kind::number:
      return type.says("number") || (type.says("integer") && value.whole().has_value());
  }
  return false;
}

}  // namespace

bool schema_compiler::fits_types(json_slice value, const schema_words& w) const {
  const auto& type = w[word::type];
  if (!type) return true;
  if (!type->is(json_kind::list)) return is_of_type(value, *type);
  return !type->each([&](json_slice t) { return !is_of_type(value, t); });
}

/// The value without white space, its texts with only the escapes that they need.
std::pmr::string schema_compiler::spelled(json_slice value) const {
  std::pmr::string out(b_.memory());
  auto comma = [&out] {
    if (out.back() != '{' && out.back() != '[') out += ',';
  };
  auto text = [&](json_slice t) {
    (out += '"').append(json_.spelled(*t.text(b_.memory()))) += '"';
  };
  if (value.is(json_kind::text)) {
    text(value);
  } else if (value.is(json_kind::list)) {
    out += '[';
    value.each([&](json_slice v) { return comma(), out.append(spelled(v)), true; });
    out += ']';
  } else if (value.is(json_kind::object)) {
    out += '{';
    value.each([&](json_slice key, json_slice v) {
      comma();
      text(key);
      (out += ':').append(spelled(v));
      return true;
    });
    out += '}';
  } else {
    out.append(value.raw());
  }
  return out;
}

expr schema_compiler::enumerated(const schema_words& w, uint32_t at) {
  word which = w[word::constant] ? word::constant : word::enumeration;
  if (!only(w, {word::constant, word::enumeration, word::type}, which, at)) return {};
  std::pmr::vector<std::pmr::string> values(b_.memory());
  auto add = [&](json_slice v) {
    if (fits_types(v, w)) values.push_back(spelled(v));
    return b_.work(v.raw().size());
  };
  if (w[word::constant]) {
    add(*w[word::constant]);
  } else if (!w[word::enumeration]->is(json_kind::list) || w[word::enumeration]->count() == 0) {
    return refuse(below(at, "enum"), "this must be a list of values");
  } else {
    w[word::enumeration]->each([&](json_slice v) { return add(v); });
  }
  if (w[word::constant] && w[word::enumeration] && !values.empty()) {
    bool listed =
        w[word::enumeration]->is(json_kind::list) &&
        !w[word::enumeration]->each([&](json_slice v) { return spelled(v) != values[0]; });
    if (!listed) return refuse(at, "`const` is not in `enum`");
  }
  return b_.one_of(values);
}

expr schema_compiler::text(const schema_words& w, uint32_t at) {
  auto least = count(w, word::least_length, at), most = count(w, word::most_length, at);
  if (b_.failed()) return {};
  bool counted = least || most;
  if (int(counted) + int(w[word::pattern].has_value()) + int(w[word::format].has_value()) > 1)
    return refuse(at, "only one of lengths, `pattern` and `format` is supported at once");
  if (w[word::format]) return formatted(*w[word::format], at);
  if (!w[word::pattern]) {
    if (most && *most < least.value_or(0)) return b_.nothing();
    auto characters = b_.repeat(json_.text_character(), least.value_or(0),
                                most.value_or(grammar_builder::no_end));
    return json_.text_of(characters);
  }
  auto pattern = w[word::pattern]->text(b_.memory());
  if (!pattern) return refuse(below(at, "pattern"), "this must be a text");
  character_form form = [this](const codepoint_set& set) { return json_.character(set); };
  auto made = parse_pattern(*pattern, b_, form, true);
  if (!made) return refuse(below(at, "pattern"), "{}", made.why().text);
  return json_.text_of(*made);
}

expr schema_compiler::formatted(json_slice format, uint32_t at) {
  auto pattern = pattern_of_format(format);
  if (!pattern)
    return refuse(below(at, "format"),
                  "supported are date-time, date, time, duration, email, hostname, ipv4, ipv6, "
                  "uuid");
  character_form form = [this](const codepoint_set& set) { return json_.character(set); };
  auto made = parse_pattern(*pattern, b_, form, false);
  return made ? json_.text_of(*made) : expr{};
}

expr schema_compiler::number(const schema_words& w, uint32_t at) {
  for (auto which : {word::maximum, word::above, word::below, word::multiple_of})
    if (w[which]) return refuse(at, "`{}` is supported for integers only", w.name(which));
  if (!w[word::minimum]) return json_.number();
  if (w[word::minimum]->number() != 0.0)
    return refuse(at, "`minimum` of numbers is supported if it is 0; integers take any");
  return json_.magnitude();
}

/// The stricter of a closed and an open bound, as the last integer that is allowed.
std::optional<int64_t> schema_compiler::bound(const schema_words& w, word closed, word open,
                                              uint32_t at) {
  bool lower = closed == word::minimum;
  std::optional<int64_t> found;
  for (word which : {closed, open}) {
    if (!w[which]) continue;
    auto whole = w[which]->whole();
    auto number = w[which]->number();
    constexpr double exact = 9e15;
    if (!whole && (!number || std::abs(*number) > exact)) {
      refuse(at, "`{}` must be a number of at most 64 bits", w.name(which));
      return {};
    }
    int64_t at_least = whole ? *whole : int64_t(lower ? std::ceil(*number) : std::floor(*number));
    bool excluded = which == open && (whole || double(at_least) == *number);
    if (excluded && at_least == (lower ? INT64_MAX : INT64_MIN)) {
      refuse(at, "`{}` leaves no integer", w.name(which));
      return {};
    }
    int64_t value = at_least + (excluded ? lower ? 1 : -1 : 0);
    found = !found ? value : lower ? std::max(*found, value) : std::min(*found, value);
  }
  return found;
}

expr schema_compiler::integer(const schema_words& w, uint32_t at) {
  if (w[word::multiple_of] && w[word::multiple_of]->number() != 1.0)
    return refuse(at, "`multipleOf` is not supported");
  auto least = bound(w, word::minimum, word::above, at);
  auto most = bound(w, word::maximum, word::below, at);
  if (b_.failed()) return {};
  if (!least && !most) return json_.integer();
  if (least && most && *least > *most) return b_.nothing();
  return integers_between(b_, json_, least, most);
}

}  // namespace lethe
