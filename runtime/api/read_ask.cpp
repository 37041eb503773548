#include <algorithm>

#include "runtime/api/api_labels.hpp"
#include "runtime/api/read_fields.hpp"

namespace lethe {

namespace {

const api_field* named(std::span<const api_field> fields, json_slice key) {
  auto found = std::ranges::find_if(fields, [&](const auto& f) { return key.says(f.name); });
  return found == fields.end() ? nullptr : &*found;
}

/// Only what looks like a parameter's name is said back.
std::string shown(json_slice key) {
  std::string_view name = key.raw().substr(1, key.raw().size() - 2);
  bool plain = name.size() <= 40 &&
               std::ranges::all_of(name, [](char c) { return c == '_' || (c >= 'a' && c <= 'z'); });
  return plain ? std::string(name) : std::string();
}

api_refusal read_label(const api_rules& rules, const char* label) {
  if (rules.labels_allowed) return {};
  return wrong_param(label,
                     "{} is refused: it could tell your requests from another's; only the lab "
                     "profile takes it",
                     label);
}

api_refusal read_member(const api_rules& rules, api_ask& into, json_slice key, json_slice value) {
  auto own = into.call == api_call::chat ? chat_fields() : completion_fields();
  const api_field* field = named(own, key);
  if (!field) field = named(common_fields(), key);
  if (!field) field = named(form_fields(), key);
  if (field) return field->read(into, value);
  for (const char* label : api_labels)
    if (key.says(label)) return read_label(rules, label);
  std::string name = shown(key);
  return wrong_param(name, "unknown parameter{}{}", name.empty() ? "" : ": ", name);
}

api_refusal check_whole(const api_ask& a) {
  bool chat = a.call == api_call::chat;
  if (a.model.empty()) return wrong_param("model", "model is missing");
  if (chat && !a.messages) return wrong_param("messages", "messages is missing");
  if (!chat && a.prompts.empty()) return wrong_param("prompt", "prompt is missing");
  if (chat && a.logprobs > 0 && !a.want_logprobs)
    return wrong_param("top_logprobs", "top_logprobs needs logprobs: true");
  if (a.include_usage && !a.stream)
    return wrong_param("stream_options", "stream_options needs stream: true");
  return check_forced_calls(a);
}

}  // namespace

api_refusal read_ask(std::string_view body, const api_rules& rules, api_ask& into) {
  auto root = check_json(body);
  if (!root) return api_error{.message = "the body is " + root.why().text};
  if (!root->is(json_kind::object)) return api_error{.message = "the body is no JSON object"};
  into.choices_max = rules.choices_max;
  api_refusal refused;
  root->each([&](json_slice key, json_slice value) {
    return !(refused = read_member(rules, into, key, value));
  });
  // The older name counts where the newer is not given, as vLLM has it.
  if (into.max_completion_tokens) into.max_tokens = into.max_completion_tokens;
  return refused ? refused : check_whole(into);
}

}  // namespace lethe
