#include <charconv>

#include "runtime/api/read_fields.hpp"
#include "runtime/api/read_values.hpp"
#include "runtime/base/limits.hpp"

namespace lethe {

namespace {

constexpr int64_t most_u32 = UINT32_MAX;

api_refusal model(api_ask& a, json_slice v) {
  auto name = v.text(a.memory);
  if (!name || name->empty()) return wrong_param("model", "model must be a text");
  a.model = *std::move(name);
  return {};
}

api_refusal one_stop(api_ask& a, json_slice v) {
  auto text = v.text(a.memory);
  if (!text || text->empty() || text->size() > limits::stop_bytes_max)
    return wrong_param("stop", "stop must be texts of 1 to {} bytes", limits::stop_bytes_max);
  if (a.stops.size() == limits::stops_max)
    return wrong_param("stop", "stop has more than {} texts", limits::stops_max);
  a.stops.push_back(*std::move(text));
  return {};
}

api_refusal stop(api_ask& a, json_slice v) {
  if (v.is(json_kind::null)) return {};
  if (!v.is(json_kind::list)) return one_stop(a, v);
  api_refusal refused;
  v.each([&](json_slice item) { return !(refused = one_stop(a, item)); });
  return refused;
}

api_refusal stop_token_ids(api_ask& a, json_slice v) {
  if (v.is(json_kind::null)) return {};
  if (!v.is(json_kind::list) || v.count() > limits::stops_max)
    return wrong_param("stop_token_ids", "stop_token_ids must be a list of at most {} token ids",
                       limits::stops_max);
  api_refusal refused;
  v.each([&](json_slice item) {
    uint64_t id = 0;
    refused = read_whole("stop_token_ids", item, 0, most_u32, id);
    a.stop_ids.push_back(uint32_t(id));
    return !refused;
  });
  return refused;
}

std::optional<uint32_t> token_id(json_slice key, std::pmr::memory_resource* memory) {
  auto text = key.text(memory);
  uint32_t id = 0;
  auto [rest, wrong] = std::from_chars(text->data(), text->data() + text->size(), id);
  if (wrong != std::errc() || rest != text->data() + text->size()) return {};
  return id;
}

api_refusal bias(api_ask& a, json_slice v) {
  constexpr const char* form = "logit_bias must be an object of token ids and numbers";
  if (v.is(json_kind::null)) return {};
  if (!v.is(json_kind::object)) return wrong_param("logit_bias", "{}", form);
  if (v.count() > limits::logit_bias_max)
    return wrong_param("logit_bias", "logit_bias has more than {} entries", limits::logit_bias_max);
  bool good = v.each([&](json_slice key, json_slice value) {
    auto id = token_id(key, a.memory);
    auto number = value.number();
    if (id && number) a.bias.push_back({*id, float(*number)});
    return id && number;
  });
  if (!good) return wrong_param("logit_bias", "{}", form);
  return {};
}

api_refusal stream_options(api_ask& a, json_slice v) {
  if (v.is(json_kind::null)) return {};
  if (!v.is(json_kind::object))
    return wrong_param("stream_options", "stream_options must be an object");
  auto usage = v.find("include_usage");
  return usage ? read_flag("stream_options.include_usage", *usage, a.include_usage) : api_refusal();
}

api_refusal prompt_logprobs(api_ask&, json_slice v) {
  if (v.is(json_kind::null)) return {};
  return wrong_param(
      "prompt_logprobs",
      "prompt_logprobs is not built; /v1/completions scores a prompt with echo: true "
      "and logprobs");
}

api_refusal store(api_ask&, json_slice v) {
  bool kept = false;
  if (auto refused = read_flag("store", v, kept)) return refused;
  if (!kept) return {};
  return wrong_param("store", "store: true is refused: nothing of a request or answer is kept");
}

constexpr api_field fields[] = {
    {"model", model},
    {"stop", stop},
    {"stop_token_ids", stop_token_ids},
    {"logit_bias", bias},
    {"stream_options", stream_options},
    {"prompt_logprobs", prompt_logprobs},
    {"store", store},
    {"stream", [](api_ask& a, json_slice v) { return read_flag("stream", v, a.stream); }},
    {"temperature",
     [](api_ask& a, json_slice v) { return read_float("temperature", v, a.wishes.temperature); }},
    {"top_p", [](api_ask& a, json_slice v) { return read_float("top_p", v, a.wishes.top_p); }},
    {"min_p", [](api_ask& a, json_slice v) { return read_float("min_p", v, a.wishes.min_p); }},
    {"typical_p",
     [](api_ask& a, json_slice v) { return read_float("typical_p", v, a.wishes.typical_p); }},
    {"repetition_penalty",
     [](api_ask& a, json_slice v) {
       return read_float("repetition_penalty", v, a.wishes.repetition_penalty);
     }},
    {"presence_penalty",
     [](api_ask& a, json_slice v) {
       return read_float("presence_penalty", v, a.presence_penalty);
     }},
    {"frequency_penalty",
     [](api_ask& a, json_slice v) {
       return read_float("frequency_penalty", v, a.frequency_penalty);
     }},
    // -1 is how vLLM's clients say "all".
    {"top_k",
     [](api_ask& a, json_slice v) {
       if (v.whole() == -1) return a.wishes.top_k = 0, api_refusal();
       return read_whole("top_k", v, 0, most_u32, a.wishes.top_k);
     }},
    {"seed",
     [](api_ask& a, json_slice v) { return read_whole("seed", v, INT64_MIN, INT64_MAX, a.seed); }},
    {"n", [](api_ask& a, json_slice v) { return read_whole("n", v, 1, a.choices_max, a.choices); }},
    {"max_tokens",
     [](api_ask& a, json_slice v) {
       return read_whole("max_tokens", v, 1, most_u32, a.max_tokens);
     }},
    {"min_tokens",
     [](api_ask& a, json_slice v) {
       return read_whole("min_tokens", v, 0, most_u32, a.min_tokens);
     }},
    {"ignore_eos",
     [](api_ask& a, json_slice v) { return read_flag("ignore_eos", v, a.ignore_eos); }},
    {"include_stop_str_in_output",
     [](api_ask& a, json_slice v) {
       return read_flag("include_stop_str_in_output", v, a.include_stop);
     }},
    {"skip_special_tokens",
     [](api_ask& a, json_slice v) { return read_flag("skip_special_tokens", v, a.skip_special); }},
};

}  // namespace

std::span<const api_field> common_fields() { return fields; }

}  // namespace lethe
