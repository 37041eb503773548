#pragma once

#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/api_error.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/batch/sampling.hpp"
#include "runtime/json/json_slice.hpp"

namespace lethe {

enum class api_call : uint8_t { chat, completion };

/// A prompt of /v1/completions: a text, or ids.
struct api_prompt {
  std::pmr::string text;
  std::pmr::vector<uint32_t> ids;
  bool is_ids = false;
};

/// What `response_format` or `structured_outputs` asks of the answer's form.
enum class answer_form : uint8_t { text, json_object, json_schema, grammar, regex, choice };

/// What `tool_choice` says.
enum class tool_use : uint8_t { allowed, forbidden, required };

/// A request of the API as its body says it, checked for form; all of it lives in one memory, and
/// slices point into the body. Fields that the body leaves out are empty: defaults are the model's.
struct api_ask {
  explicit api_ask(std::pmr::memory_resource* m)
      : memory(m), model(m), prompts(m), stops(m), stop_ids(m), bias(m) {}

  std::pmr::memory_resource* memory;
  api_call call = api_call::chat;
  std::pmr::string model;
  std::optional<json_slice> messages, tools, template_variables;
  tool_use tools_are = tool_use::allowed;
  std::optional<std::pmr::string> tool_named;  // the only one that may be called
  bool one_call = false;                       // when calls are required
  bool add_generation_prompt = true;
  std::pmr::vector<api_prompt> prompts;
  answer_form form = answer_form::text;
  std::optional<json_slice> form_value;  // the schema, or what the form's name says
  const char* form_param = "";           // where it stands in the body

  sampling_wishes wishes;
  float presence_penalty = 0, frequency_penalty = 0;
  std::optional<uint64_t> seed;
  std::optional<uint32_t> max_tokens, max_completion_tokens;  // read_ask leaves the first only
  uint32_t min_tokens = 0;
  uint32_t choices = 1, choices_max = 1;
  bool want_logprobs = false;
  uint32_t logprobs = 0;  // alternatives
  bool stream = false, include_usage = false;
  bool echo = false, ignore_eos = false, include_stop = false, skip_special = true;
  std::pmr::vector<std::pmr::string> stops;
  std::pmr::vector<uint32_t> stop_ids;
  std::pmr::vector<logit_bias> bias;
};

/// Whether the answer may call tools.
inline bool may_call(const api_ask& a) { return a.tools && a.tools_are != tool_use::forbidden; }

struct api_rules {
  bool labels_allowed = false;  // user, priority, ...: could single someone out; lab only
  uint32_t choices_max = limits::choices_max;
};

/// Reads a body of /v1/chat/completions or /v1/completions into `into`, whose `call` says which.
api_refusal read_ask(std::string_view body, const api_rules& rules, api_ask& into);

}  // namespace lethe
