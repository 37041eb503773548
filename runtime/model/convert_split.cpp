#include "runtime/model/convert_split.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace lethe {

namespace dom = simdjson::dom;

namespace {

struct named_pattern {
  std::string_view name, pattern;
};

#define REST R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define REST_SLASH R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define LEAD R"([^\r\n\p{L}\p{N}]?)"

/// As the publishers write them.
constexpr named_pattern patterns[] = {
    {"llama-bpe", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|" LEAD R"(\p{L}+|\p{N}{1,3})" REST},
    {"qwen2", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|" LEAD R"(\p{L}+|\p{N})" REST},
    {"tekken", LEAD UPPER "*" LOWER "+|" LEAD UPPER "+" LOWER R"(*|\p{N})" REST_SLASH},
    {"gpt-2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
};

#undef REST
#undef REST_SLASH
#undef UPPER
#undef LOWER
#undef LEAD

std::string_view type_of(dom::object o) {
  std::string_view type;
  return o.at_key("type").get(type) ? std::string_view() : type;
}

/// The steps of a pre_tokenizer or decoder, whether one or a Sequence.
std::vector<dom::object> steps_of(dom::object json, std::string_view part, std::string_view inner) {
  std::vector<dom::object> steps;
  dom::object one;
  if (json.at_key(part).get(one)) return steps;
  dom::array many;
  if (type_of(one) != "Sequence" || one.at_key(inner).get(many)) return {one};
  for (dom::element e : many)
    if (!e.get(one)) steps.push_back(one);
  return steps;
}

std::optional<std::string_view> pattern_of(dom::object split) {
  dom::element pattern;
  std::string_view text;
  if (split.at_key("pattern").get(pattern) || pattern.at_key("Regex").get(text))
    return std::nullopt;
  return text;
}

bool flag(dom::object o, std::string_view key, bool otherwise) {
  bool value = otherwise;
  return o.at_key(key).get(value) ? otherwise : value;
}

}  // namespace

bool is_byte_level(dom::object json) {
  for (auto step : steps_of(json, "pre_tokenizer", "pretokenizers"))
    if (type_of(step) == "ByteLevel") return true;
  for (auto step : steps_of(json, "decoder", "decoders"))
    if (type_of(step) == "ByteLevel") return true;
  return false;
}

result<std::string> split_name(dom::object json) {
  auto steps = steps_of(json, "pre_tokenizer", "pretokenizers");
  auto known = [](std::string_view pattern) -> std::string_view {
    for (const auto& p : patterns)
      if (p.pattern == pattern) return p.name;
    return {};
  };
  bool bytes_split = false, digits = false;
  std::vector<std::string_view> names;
  for (auto step : steps) {
    auto type = type_of(step);
    if (type == "ByteLevel")
      bytes_split = flag(step, "use_regex", true);
    else if (type == "Split")
      names.push_back(known(pattern_of(step).value_or("")));
    else if (type == "Digits" && flag(step, "individual_digits", false))
      digits = true;
    else
      names.push_back({});
  }
  if (names.size() == 1 && !names[0].empty() && !bytes_split && !digits)
    return std::string(names[0]);
  if (names.empty() && bytes_split) return std::string(digits ? "smollm" : "gpt-2");
  return fail(
      "its pre_tokenizer has no name in GGUF; supported: those of gpt-2, "
      "llama-bpe, qwen2, tekken, smollm");
}

}  // namespace lethe
