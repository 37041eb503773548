#include <unordered_set>

#include "runtime/base/json_numbers.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/tokenizer/component_json.hpp"
#include "runtime/tokenizer/config_json.hpp"
#include "runtime/tokenizer/model_json.hpp"
#include "runtime/tokenizer/tokenizer.hpp"
#include "runtime/tokenizer/tokenizer_parts.hpp"

namespace lethe {
namespace {

using json::added_token_entry;
using parts_owner = std::unique_ptr<tokenizer_parts>;

result<std::string> normalized(std::string_view text, const tokenizer_parts& parts) {
  auto* memory = std::pmr::new_delete_resource();
  std::pmr::string out(text, memory);
  match_session session(text.size(), memory);
  auto done = normalizers::apply(parts.normalizers, out, session);
  if (!done) return done.why();
  return std::string(out);
}

result<void> add_tokens(std::vector<added_token_entry> entries, tokenizer_parts& parts) {
  std::vector<added_token> raw, after_normalizing;
  for (auto& [token, is_normalized] : entries) {
    // Where the model has the text already, its id counts, whatever the entry says.
    token.id = parts.tokens.id_of(token.text).value_or(token.id);
    auto kind = token.special ? vocabulary::kind::control : vocabulary::kind::word;
    auto added = parts.tokens.add(token.id, token.text, kind);
    if (!added) return fail("added_tokens: {}", added.why().text);
    if (is_normalized) {
      auto text = normalized(token.text, parts);
      if (!text) return text.why();
      token.text = *std::move(text);
    }
    (is_normalized ? after_normalizing : raw).push_back(std::move(token));
  }
  parts.raw_tokens = added_tokens(std::move(raw));
  parts.normalized_tokens = added_tokens(std::move(after_normalizing));
  return {};
}

result<std::vector<added_token_entry>> read_entries(json::object o) {
  auto e = json::find(o, "added_tokens");
  if (!e) return std::vector<added_token_entry>();
  auto all = json::as_array(*e, "added_tokens");
  if (!all) return all.why();
  return json::read_added_tokens(*all);
}

result<void> read_model_and_tokens(json::object o, tokenizer_parts& parts) {
  auto entries = read_entries(o);
  if (!entries) return entries.why();
  std::unordered_set<std::string_view> special;
  for (auto& entry : *entries)
    if (entry.token.special) special.insert(entry.token.text);
  auto e = json::find(o, "model");
  if (!e) return fail("\"model\" is missing");
  auto model = json::as_object(*e, "model");
  if (!model) return model.why();
  auto done = json::read_model(*model, parts,
                               [&special](std::string_view t) { return special.contains(t); });
  if (!done) return done;
  return add_tokens(*std::move(entries), parts);
}

result<void> read_steps(json::object o, tokenizer_parts& parts) {
  if (auto e = json::find(o, "normalizer")) {
    auto steps = json::read_normalizers(*e);
    if (!steps) return steps.why();
    parts.normalizers = *std::move(steps);
  }
  if (auto e = json::find(o, "pre_tokenizer")) {
    auto steps = json::read_pre_tokenizers(*e);
    if (!steps) return steps.why();
    parts.pre_tokenizers = *std::move(steps);
  }
  if (auto e = json::find(o, "decoder")) {
    auto steps = json::read_decoders(*e);
    if (!steps) return steps.why();
    parts.decoders = *std::move(steps);
  } else {
    parts.decoders.emplace_back(decoders::join{" "});
  }
  return {};
}

result<void> read_surroundings(json::object o, tokenizer_parts& parts) {
  auto e = json::find(o, "post_processor");
  if (!e) return {};
  auto around = json::read_surroundings(*e);
  if (!around) return around.why();
  for (auto* side : {&around->before, &around->after})
    for (uint32_t id : *side)
      if (!parts.tokens.has(id)) return fail("post_processor: token {} does not exist", id);
  parts.before = std::move(around->before);
  parts.after = std::move(around->after);
  return {};
}

result<parts_owner> read(std::string_view source) {
  if (source.size() > limits::json_file_bytes_max)
    return fail("{} bytes; at most {} are read", source.size(), limits::json_file_bytes_max);
  simdjson::dom::parser parser;
  json::object o;
  if (auto bad = parser.parse(widen_integers(source)).get(o))
    return fail("not a JSON object: {}", simdjson::error_message(bad));
  auto parts = std::make_unique<tokenizer_parts>();
  for (auto* step : {read_steps, read_model_and_tokens, read_surroundings}) {
    auto done = step(o, *parts);
    if (!done) return done.why();
  }
  return parts;
}

}  // namespace

result<tokenizer> tokenizer::from_json(std::string_view tokenizer_json,
                                       std::string_view config_json) {
  auto parts = read(tokenizer_json);
  if (!parts) return fail("tokenizer.json: {}", parts.why().text);
  if (!config_json.empty()) {
    auto config = json::read_config(config_json, **parts);
    if (!config) return fail("tokenizer_config.json: {}", config.why().text);
  }
  (*parts)->spell_middles();
  return tokenizer(*std::move(parts));
}

}  // namespace lethe
