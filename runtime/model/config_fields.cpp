#include "runtime/model/config_fields.hpp"

#include <cmath>
#include <limits>

#include "runtime/base/json_numbers.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/model/byte_reader.hpp"

namespace lethe {

namespace dom = simdjson::dom;

namespace {

constexpr size_t nesting_max = 64;

}  // namespace

std::nullopt_t config_fields::wrong(std::string_view key, const char* wanted) const {
  note(*problems_, "{}{} must be {}", where_, key, wanted);
  return std::nullopt;
}

std::optional<dom::element> config_fields::find(std::string_view key) const {
  dom::element value;
  if (object_.at_key(key).get(value) || value.is_null()) return std::nullopt;
  return value;
}

bool config_fields::is_null(std::string_view key) const {
  dom::element value;
  return !object_.at_key(key).get(value) && value.is_null();
}

std::optional<uint32_t> config_fields::u32(std::string_view key) const {
  auto value = find(key);
  if (!value) return std::nullopt;
  double number = 0;  // holds every u32; 4096.0 is an integer, too
  if (value->get(number) || !(number >= 0) || number > std::numeric_limits<uint32_t>::max() ||
      number != std::floor(number))
    return wrong(key, "an integer from 0 to 4294967295");
  return uint32_t(number);
}

std::optional<double> config_fields::number(std::string_view key) const {
  auto value = find(key);
  if (!value) return std::nullopt;
  double number = 0;
  if (value->get(number) || !std::isfinite(number)) return wrong(key, "a finite number");
  return number;
}

std::optional<bool> config_fields::boolean(std::string_view key) const {
  auto value = find(key);
  if (!value) return std::nullopt;
  bool flag = false;
  if (value->get(flag)) return wrong(key, "true or false");
  return flag;
}

std::optional<std::string_view> config_fields::text(std::string_view key) const {
  auto value = find(key);
  if (!value) return std::nullopt;
  std::string_view text;
  if (value->get(text)) return wrong(key, "a text");
  return text;
}

std::optional<config_fields> config_fields::object(std::string_view key) const {
  auto value = find(key);
  if (!value) return std::nullopt;
  dom::object object;
  if (value->get(object)) return wrong(key, "an object");
  return config_fields(object, where_ + std::string(key) + ".", *problems_);
}

std::vector<std::string_view> config_fields::texts(std::string_view key) const {
  auto value = find(key);
  if (!value) return {};
  std::vector<std::string_view> all;
  dom::array array;
  if (value->get(array)) return wrong(key, "a list of texts"), all;
  for (dom::element element : array) {
    std::string_view text;
    if (element.get(text)) return wrong(key, "a list of texts"), all;
    all.push_back(text);
  }
  return all;
}

std::vector<uint32_t> config_fields::ids(std::string_view key) const {
  auto value = find(key);
  if (!value) return {};
  std::vector<uint32_t> all;
  auto add = [&all](dom::element element) {
    int64_t id = 0;
    if (element.get(id) || id < -1 || id >= int64_t{limits::vocab_max}) return false;
    if (id >= 0) all.push_back(uint32_t(id));
    return true;
  };
  dom::array array;
  bool good = true;
  if (value->get(array))
    good = add(*value);
  else
    for (dom::element element : array) good = good && add(element);
  if (!good) wrong(key, "a token id or a list of token ids");
  return all;
}

std::optional<uint32_t> config_fields::id(std::string_view key) const {
  auto all = ids(key);
  return all.empty() ? std::nullopt : std::optional(all[0]);
}

uint32_t config_fields::required(std::string_view key) const {
  if (!has(key)) note(*problems_, "{}{} is missing", where_, key);
  return u32(key).value_or(0);
}

std::optional<config_fields> parse_config(dom::parser& parser, std::string_view json,
                                          std::string_view where, problem_list& problems) {
  if (json.size() > limits::json_file_bytes_max) {
    note(problems, "{}: {} bytes; at most {} are read", where, json.size(),
         limits::json_file_bytes_max);
    return std::nullopt;
  }
  dom::object object;
  std::string text = widen_integers(json);
  auto failed = parser.allocate(text.size(), nesting_max);
  if (!failed) failed = parser.parse(text).get(object);
  if (failed) {
    note(problems, "{}: not a JSON object: {}", where, simdjson::error_message(failed));
    return std::nullopt;
  }
  return config_fields(object, std::string(where) + ": ", problems);
}

}  // namespace lethe
