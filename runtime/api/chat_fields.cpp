#include "runtime/api/read_fields.hpp"
#include "runtime/api/read_values.hpp"
#include "runtime/api/template_messages.hpp"
#include "runtime/base/limits.hpp"

namespace lethe {

namespace {

api_refusal messages(api_ask& a, json_slice v) {
  if (!v.is(json_kind::list) || v.count() == 0)
    return wrong_param("messages", "messages must be a list with at least one message");
  size_t i = 0;
  api_refusal refused;
  v.each([&](json_slice m) {
    refused = check_message(m, i++);
    return !refused;
  });
  a.messages = v;
  return refused;
}

/// A function's name; nothing if it is none.
std::optional<std::pmr::string> name_of_tool(json_slice tool, std::pmr::memory_resource* memory) {
  auto type = tool.find("type");
  auto function = tool.find("function");
  auto name = function ? function->find("name") : std::nullopt;
  auto said = name ? name->text(memory) : std::nullopt;
  if (!type || !type->says("function") || !said || said->empty()) return {};
  return said;
}

api_refusal tools(api_ask& a, json_slice v) {
  if (v.is(json_kind::null)) return {};
  if (!v.is(json_kind::list)) return wrong_param("tools", "tools must be a list");
  size_t i = 0;
  api_refusal refused;
  v.each([&](json_slice tool) {
    if (!name_of_tool(tool, a.memory))
      refused = wrong_param(fmt::format("tools[{}]", i),
                            "tools[{}] must be of type function, and its function have a name", i);
    ++i;
    return !refused;
  });
  if (v.count() > 0) a.tools = v;
  return refused;
}

api_refusal tool_choice(api_ask& a, json_slice v) {
  if (v.is(json_kind::null) || v.says("auto")) return {};
  a.tools_are = v.says("none") ? tool_use::forbidden : tool_use::required;
  if (v.says("none") || v.says("required")) return {};
  auto type = v.find("type");
  auto function = v.find("function");
  auto name = function ? function->find("name") : std::nullopt;
  if (type && type->says("function") && name) a.tool_named = name->text(a.memory);
  if (a.tool_named) return {};
  return wrong_param("tool_choice",
                     "tool_choice must be \"auto\", \"none\", \"required\" or an object that names "
                     "a function");
}

api_refusal template_variables(api_ask& a, json_slice v) {
  if (v.is(json_kind::null)) return {};
  if (!v.is(json_kind::object))
    return wrong_param("chat_template_kwargs", "chat_template_kwargs must be an object");
  a.template_variables = v;
  return {};
}

constexpr api_field fields[] = {
    {"messages", messages},
    {"tools", tools},
    {"tool_choice", tool_choice},
    {"chat_template_kwargs", template_variables},
    {"max_completion_tokens",
     [](api_ask& a, json_slice v) {
       return read_whole("max_completion_tokens", v, 1, int64_t{UINT32_MAX},
                         a.max_completion_tokens);
     }},
    {"logprobs",
     [](api_ask& a, json_slice v) { return read_flag("logprobs", v, a.want_logprobs); }},
    {"top_logprobs",
     [](api_ask& a, json_slice v) {
       return read_whole("top_logprobs", v, 0, limits::logprobs_max, a.logprobs);
     }},
    {"add_generation_prompt",
     [](api_ask& a, json_slice v) {
       return read_flag("add_generation_prompt", v, a.add_generation_prompt);
     }},
    // Where calls are not required their number is the model's choice.
    {"parallel_tool_calls",
     [](api_ask& a, json_slice v) {
       bool several = true;
       auto refused = read_flag("parallel_tool_calls", v, several);
       a.one_call = !several;
       return refused;
     }},
};

}  // namespace

api_refusal check_forced_calls(const api_ask& a) {
  if (a.tools_are != tool_use::required) return {};
  if (!a.tools) return wrong_param("tool_choice", "tool_choice needs tools");
  bool found = !a.tool_named;
  a.tools->each([&](json_slice tool) {
    found = found || name_of_tool(tool, a.memory) == a.tool_named;
    return !found;
  });
  if (found) return {};
  return wrong_param("tool_choice", "tool_choice names a function that is not among the tools");
}

std::span<const api_field> chat_fields() { return fields; }

}  // namespace lethe
