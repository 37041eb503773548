#include "runtime/api/forced_calls.hpp"

#include "runtime/grammar/json_rules.hpp"
#include "runtime/grammar/schema.hpp"

namespace lethe {

namespace {

using expr = grammar_builder::expr;

constexpr uint32_t calls_max = 16;  // in one answer

/// Clients say in several ways that a function takes nothing; `properties` that are none are one.
bool takes_some(std::optional<json_slice> schema) {
  if (!schema || schema->is(json_kind::null)) return false;
  auto properties = schema->find("properties");
  return !properties || properties->count() > 0 || schema->find("additionalProperties");
}

/// {"name": "...", "arguments": ...}
expr one_call(json_slice function, const char* arguments, grammar_builder& b) {
  std::pmr::string begin(R"({"name": )", b.memory());
  auto name = function.find("name");
  begin.append(name->raw()).append(", \"").append(arguments).append("\": ");
  auto schema = function.find("parameters");
  auto all = takes_some(schema) ? schema_rules(*schema, b) : b.literal("{}");
  return b.sequence({b.literal(begin), all, b.literal("}")});
}

}  // namespace

result<grammar> forced_calls_grammar(const api_ask& ask, tool_format format) {
  grammar_builder b(ask.memory);
  const char* arguments = format == tool_format::llama_json ? "parameters" : "arguments";
  uint32_t root = b.add_rule("calls"), call = b.add_rule("a call");
  std::pmr::vector<expr> ways(ask.memory);
  std::string at;
  size_t i = 0;
  ask.tools->each([&](json_slice tool) {
    auto function = *tool.find("function");
    at = fmt::format("tools[{}].function.parameters: ", i++);
    if (!ask.tool_named || function.find("name")->text(ask.memory) == *ask.tool_named)
      ways.push_back(one_call(function, arguments, b));
    return !b.failed();
  });
  if (b.failed()) return fail("{}{}", at, b.why().text);
  b.define(call, b.either(ways));
  auto more = b.sequence({b.literal("; "), b.call(call)});
  b.define(root, b.sequence({b.call(call), b.repeat(more, 0, ask.one_call ? 0 : calls_max - 1)}));
  auto made = b.build(root);
  if (!made) return fail("tools: {}", made.why().text);
  return made;
}

}  // namespace lethe
