#include <gtest/gtest.h>

#include "runtime/api/compile_form.hpp"

namespace lethe {
namespace {

struct compiled {
  std::pmr::monotonic_buffer_resource memory;
  api_ask ask{&memory};
  std::string body;
  api_refusal refused;
  std::optional<grammar> form;

  explicit compiled(const std::string& fields, api_call call = api_call::chat) {
    ask.call = call;
    body = call == api_call::chat
               ? R"({"model":"m","messages":[{"role":"user","content":"x"}],)" + fields + "}"
               : R"({"model":"m","prompt":"x",)" + fields + "}";
    refused = read_ask(body, {}, ask);
    if (!refused) refused = compile_form(ask, form);
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

}  // namespace
}  // namespace lethe
