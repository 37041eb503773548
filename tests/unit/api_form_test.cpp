#include <gtest/gtest.h>

#include "runtime/api/compile_form.hpp"
#include "runtime/api/forced_calls.hpp"
#include "tests/unit/grammar_match.hpp"

namespace lethe {
namespace {

struct compiled {
  std::pmr::monotonic_buffer_resource memory;
  api_ask ask{&memory};
  std::string body;
  api_refusal refused;
  std::optional<grammar> form;

  explicit compiled(const std::string& fields, api_call call = api_call::chat,
                    tool_format format = tool_format::hermes) {
    ask.call = call;
    body = call == api_call::chat
               ? R"({"model":"m","messages":[{"role":"user","content":"x"}],)" + fields + "}"
               : R"({"model":"m","prompt":"x",)" + fields + "}";
    refused = read_ask(body, {}, ask);
    if (!refused) refused = compile_form(ask, format, form);
  }
};

TEST(ApiForm, CompilesEveryForm) {
  for (auto fields :
       {R"("response_format":{"type":"json_object"})",
        R"("response_format":{"type":"json_schema","json_schema":{
           "name":"n","schema":{"type":"object"},"strict":true}})",
        R"("structured_outputs":{"json":{"type":"string"}})",
        R"("structured_outputs":{"json":"{\"type\":\"string\"}"})",
        R"("structured_outputs":{"json_object":true})", R"("structured_outputs":{"regex":"a+"})",
        R"("structured_outputs":{"choice":["a","b"]})",
        R"("structured_outputs":{"grammar":"root ::= \"a\""})", R"("guided_json":{})",
        R"("guided_regex":"[0-9]+")", R"("guided_choice":["x"])",
        R"("guided_grammar":"root ::= [a-z]")"})
    for (auto call : {api_call::chat, api_call::completion}) {
      compiled c(fields, call);
      EXPECT_FALSE(c.refused) << fields << ": " << c.refused->message;
      EXPECT_TRUE(c.form) << fields;
    }
  compiled none(R"("response_format":{"type":"text"},"structured_outputs":null)");
  EXPECT_FALSE(none.refused);
  EXPECT_FALSE(none.form);
}

TEST(ApiForm, RefusalsNameTheParameter) {
  struct fault {
    const char *fields, *param, *what;
  };
  for (auto f :
       {fault{
            R"("response_format":{"type":"json_schema","json_schema":{
               "schema":{"properties":{"x":{"not":{}}}}}})",
            "response_format.json_schema.schema", "#/properties/x"},
        {R"("structured_outputs":{"json":"{"})", "structured_outputs.json", "JSON"},
        {R"("structured_outputs":{"json":[]})", "structured_outputs.json", "schema"},
        {R"("structured_outputs":{"regex":"(a"})", "structured_outputs.regex", "closed"},
        {R"("structured_outputs":{"choice":[]})", "structured_outputs.choice", "list"},
        {R"("structured_outputs":{"choice":[1]})", "structured_outputs.choice", "texts"},
        {R"("structured_outputs":{"xml":1})", "structured_outputs", "takes"},
        {R"("structured_outputs":{"json":{},"regex":"a"})", "structured_outputs.regex", "only one"},
        {R"("response_format":{"type":"json_object"},"guided_regex":"a")", "guided_regex",
         "only one"},
        {R"("guided_grammar":"root ::= x")", "guided_grammar", "1:10"},
        {R"("guided_json":7)", "guided_json", "schema"}}) {
    compiled c(f.fields);
    ASSERT_TRUE(c.refused) << f.fields;
    EXPECT_EQ(c.refused->param, f.param) << f.fields;
    EXPECT_EQ(c.refused->status, 400);
    EXPECT_NE(c.refused->message.find(f.what), std::string::npos) << c.refused->message;
  }
}

/// Whether all of `text` is an answer of the form.
bool takes(const compiled& c, std::string_view text) {
  std::pmr::monotonic_buffer_resource memory;
  grammar_run run(grammar(*c.form), small_trie(), 1, small_trie().size(), &memory);
  for (char byte : text)
    if (!run.accept(0, {&byte, 1})) return false;
  return run.may_end(0);
}

const std::string weather =
    R"({"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{
       "city":{"$ref":"#/$defs/city"}},"required":["city"],"$defs":{"city":{"type":"string"}}}}})";
const std::string now = R"({"type":"function","function":{"name":"now",
       "parameters":{"type":"object","properties":{}}}})";

TEST(ApiForm, RequiredCallsAreOfTheTools) {
  compiled c("\"tools\":[" + weather + "," + now + R"(],"tool_choice":"required")");
  ASSERT_FALSE(c.refused) << c.refused->message;
  EXPECT_TRUE(takes(c, R"({"name": "weather", "arguments": {"city": "Oslo"}})"));
  EXPECT_TRUE(takes(c, R"({"name": "now", "arguments": {}})"));
  EXPECT_TRUE(takes(c, R"({"name": "now", "arguments": {}}; {"name": "now", "arguments": {}})"));
  EXPECT_FALSE(takes(c, R"({"name": "weather", "arguments": {}})"));
  EXPECT_FALSE(takes(c, R"({"name": "weather", "arguments": {"city": 7}})"));
  EXPECT_FALSE(takes(c, R"({"name": "other", "arguments": {}})"));
  EXPECT_FALSE(takes(c, "It is warm."));
  EXPECT_FALSE(takes(c, ""));
  std::string many = R"({"name": "now", "arguments": {}})";
  std::string sixteen = many;
  for (int i = 1; i < 16; ++i) sixteen += "; " + many;
  EXPECT_TRUE(takes(c, sixteen));
  EXPECT_FALSE(takes(c, sixteen + "; " + many));
}

TEST(ApiForm, ANamedCallIsTheOnlyOne) {
  compiled c("\"tools\":[" + weather + "," + now +
             R"(],"tool_choice":{"type":"function","function":{"name":"now"}},
                "parallel_tool_calls":false,"response_format":{"type":"json_object"})");
  ASSERT_FALSE(c.refused) << c.refused->message;
  EXPECT_TRUE(takes(c, R"({"name": "now", "arguments": {}})"));
  EXPECT_FALSE(takes(c, R"({"name": "weather", "arguments": {"city": "Oslo"}})"));
  EXPECT_FALSE(takes(c, R"({"name": "now", "arguments": {}}; {"name": "now", "arguments": {}})"));
  compiled llama("\"tools\":[" + now + R"(],"tool_choice":"required")", api_call::chat,
                 tool_format::llama_json);
  EXPECT_TRUE(takes(llama, R"({"name": "now", "parameters": {}})"));
}

TEST(ApiForm, WhatARequiredCallTakesIsReadBack) {
  std::pmr::monotonic_buffer_resource memory;
  tool_reader reader(forced_call_format, &memory);
  reader.read(R"({"name": "now", "arguments": {}}; {"name": "now", "parameters": {}})", true);
  EXPECT_EQ(reader.calls().size(), 2u);
  EXPECT_EQ(reader.content(), "");
}

TEST(ApiForm, CallsThatCannotBeRequiredAreRefused) {
  struct fault {
    std::string fields;
    const char *param, *what;
  };
  for (const auto& f : {
           fault{R"("tool_choice":"required")", "tool_choice", "needs tools"},
           {R"("tools":[],"tool_choice":"required")", "tool_choice", "needs tools"},
           {R"("tool_choice":"some")", "tool_choice", "must be"},
           {R"("tool_choice":{"type":"function"})", "tool_choice", "must be"},
           {"\"tools\":[" + now +
                R"(],"tool_choice":{"type":"function","function":{"name":"later"}})",
            "tool_choice", "not among"},
           {"\"tools\":[" + now + R"(,{"type":"other"}],"tool_choice":"required")", "tools[1]",
            "type function"},
           {R"("tools":[{"type":"function","function":{"name":"x","parameters":{"not":{}}}}],
               "tool_choice":"required")",
            "tools", "tools[0].function.parameters: schema #"},
       }) {
    compiled c(f.fields);
    ASSERT_TRUE(c.refused) << f.fields;
    EXPECT_EQ(c.refused->param, f.param) << f.fields;
    EXPECT_NE(c.refused->message.find(f.what), std::string::npos) << c.refused->message;
  }
}

}  // namespace
}  // namespace lethe
