#include "runtime/api/compile_form.hpp"

#include <new>

#include "runtime/api/forced_calls.hpp"
#include "runtime/grammar/gbnf.hpp"
#include "runtime/grammar/json_rules.hpp"
#include "runtime/grammar/pattern_rules.hpp"
#include "runtime/grammar/schema.hpp"

namespace lethe {

namespace {

result<grammar> compiled_schema(json_slice value, std::pmr::memory_resource* memory) {
  if (!value.is(json_kind::text)) return schema_grammar(value, memory);
  return schema_grammar(std::string_view(*value.text(memory)), memory);
}

result<grammar> compiled_choice(json_slice list, std::pmr::memory_resource* memory) {
  std::pmr::vector<std::pmr::string> texts(memory);
  list.each([&](json_slice item) { return texts.push_back(*item.text(memory)), true; });
  return choice_grammar(texts, memory);
}

result<grammar> compiled(const api_ask& a) {
  switch (a.form) {
    case answer_form::text:
    case answer_form::json_object:
      return json_object_grammar(a.memory);
    case answer_form::json_schema:
      return compiled_schema(*a.form_value, a.memory);
    case answer_form::grammar:
      return parse_gbnf(*a.form_value->text(a.memory), a.memory);
    case answer_form::regex:
      return pattern_grammar(*a.form_value->text(a.memory), a.memory);
    case answer_form::choice:
      return compiled_choice(*a.form_value, a.memory);
  }
  return fail("unknown form");
}

}  // namespace

api_refusal compile_form(const api_ask& ask, tool_format format, std::optional<grammar>& into) try {
  into.reset();
  if (ask.tools_are == tool_use::required) {
    auto made = forced_calls_grammar(ask, format);
    if (!made) return wrong_param("tools", "{}", made.why().text);
    into.emplace(*std::move(made));
    return {};
  }
  if (ask.form == answer_form::text) return {};
  auto made = compiled(ask);
  if (!made) return wrong_param(ask.form_param, "{}: {}", ask.form_param, made.why().text);
  into.emplace(*std::move(made));
  return {};
} catch (const std::bad_alloc&) {
  const char* param = ask.tools_are == tool_use::required ? "tools" : ask.form_param;
  return wrong_param(param, "{} does not fit the request's memory; make it simpler", param);
}

}  // namespace lethe
