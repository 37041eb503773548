// Bodies of the OpenAI interface: what is taken, and what is refused by name.
#include <gtest/gtest.h>

#include <memory>

#include "runtime/api/api_ask.hpp"
#include "runtime/base/limits.hpp"

namespace lethe {
namespace {

const std::string hello = R"("model":"ember","messages":[{"role":"user","content":"Hi"}])";

struct read_result {
  std::string body;  // slices point into it
  api_ask ask{std::pmr::get_default_resource()};
  api_refusal refused;
};

std::unique_ptr<read_result> read(const std::string& body, api_call call = api_call::chat,
                                  bool lab = false) {
  auto r = std::make_unique<read_result>();
  r->body = body;
  r->ask.call = call;
  r->refused = read_ask(r->body, {.labels_allowed = lab}, r->ask);
  return r;
}

std::unique_ptr<read_result> chat(const std::string& more) {
  return read("{" + hello + (more.empty() ? "" : ",") + more + "}");
}

std::unique_ptr<read_result> completion(const std::string& more) {
  return read("{\"model\":\"ember\"," + more + "}", api_call::completion);
}

void refuses(const read_result& r, const std::string& param) {
  SCOPED_TRACE(r.body.substr(0, 200));
  ASSERT_TRUE(r.refused);
  EXPECT_EQ(r.refused->status, 400);
  EXPECT_EQ(r.refused->param, param) << r.refused->message;
}

TEST(ApiRead, AChatWithEverything) {
  auto r = chat(R"("temperature":0.5,"top_p":0.9,"min_p":0.1,"typical_p":0.8,"top_k":40,"n":2,
    "repetition_penalty":1.1,"presence_penalty":-1,"frequency_penalty":2,"seed":-7,
    "max_completion_tokens":9,"min_tokens":2,"stop":["a","b\n"],"stop_token_ids":[5],
    "skip_special_tokens":false,"store":false,"prompt_logprobs":null,
    "logit_bias":{"7":-100,"9":1.5},
    "logprobs":true,"top_logprobs":3,"stream":true,"stream_options":{"include_usage":true},
    "tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none","ignore_eos":true,
    "include_stop_str_in_output":true,"chat_template_kwargs":{"a":1},"parallel_tool_calls":true,
    "response_format":{"type":"json_schema",
      "json_schema":{"name":"x","schema":{"type":"object"}}})");
  ASSERT_FALSE(r->refused) << r->refused->message;
  const api_ask& a = r->ask;
  EXPECT_EQ(a.model, "ember");
  EXPECT_EQ(a.messages->count(), 1u);
  EXPECT_EQ(a.wishes.temperature, 0.5f);
  EXPECT_EQ(a.wishes.top_p, 0.9f);
  EXPECT_EQ(a.wishes.min_p, 0.1f);
  EXPECT_EQ(a.wishes.typical_p, 0.8f);
  EXPECT_EQ(a.wishes.top_k, 40u);
  EXPECT_EQ(a.choices, 2u);
  EXPECT_EQ(a.wishes.repetition_penalty, 1.1f);
  EXPECT_EQ(a.presence_penalty, -1.f);
  EXPECT_EQ(a.frequency_penalty, 2.f);
  EXPECT_EQ(a.seed, uint64_t(-7));
  EXPECT_EQ(a.max_tokens, 9u);
  EXPECT_EQ(a.min_tokens, 2u);
  EXPECT_FALSE(a.skip_special);
  ASSERT_EQ(a.stops.size(), 2u);
  EXPECT_EQ(a.stops[1], "b\n");
  EXPECT_EQ(a.stop_ids.at(0), 5u);
  ASSERT_EQ(a.bias.size(), 2u);
  EXPECT_EQ(a.bias[0].id, 7u);
  EXPECT_EQ(a.bias[1].bias, 1.5f);
  EXPECT_TRUE(a.want_logprobs && a.stream && a.include_usage);
  EXPECT_EQ(a.tools_are, tool_use::forbidden);
  EXPECT_TRUE(a.ignore_eos && a.include_stop);
  EXPECT_EQ(a.logprobs, 3u);
  EXPECT_EQ(a.template_variables->raw(), "{\"a\":1}");
  EXPECT_EQ(a.form, answer_form::json_schema);
  EXPECT_EQ(a.form_value->raw(), "{\"type\":\"object\"}");
}

TEST(ApiRead, NullMeansLeftOut) {
  auto r = chat(R"("temperature":null,"stop":null,"seed":null,"max_tokens":null,"tools":null,
    "logit_bias":null,"stream":null,"stream_options":null,"response_format":null,"n":null)");
  ASSERT_FALSE(r->refused) << r->refused->message;
  EXPECT_FALSE(r->ask.wishes.temperature);
  EXPECT_FALSE(r->ask.max_tokens);
  EXPECT_EQ(r->ask.choices, 1u);
}

TEST(ApiRead, PromptsOfEveryKind) {
  auto one = completion(R"("prompt":"Hi \u00e9")");
  ASSERT_EQ(one->ask.prompts.size(), 1u);
  EXPECT_EQ(one->ask.prompts[0].text, "Hi \u00e9");
  auto ids = completion(R"("prompt":[1,2,3])");
  ASSERT_EQ(ids->ask.prompts.size(), 1u);
  EXPECT_TRUE(ids->ask.prompts[0].is_ids);
  EXPECT_EQ(ids->ask.prompts[0].ids.size(), 3u);
  EXPECT_EQ(completion(R"("prompt":["a","b"])")->ask.prompts.size(), 2u);
  EXPECT_EQ(completion(R"("prompt":[[1],[2,3]])")->ask.prompts.size(), 2u);
  auto logprobs = completion(R"("prompt":"a","logprobs":0,"echo":true,"best_of":1)");
  ASSERT_FALSE(logprobs->refused);
  EXPECT_TRUE(logprobs->ask.want_logprobs && logprobs->ask.echo);
}

TEST(ApiRead, RefusesByTheParametersName) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"("temperature":"hot")", "temperature"},
      {R"("n":0)", "n"},
      {R"("n":129)", "n"},
      {R"("n":1.5)", "n"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_completion_tokens":4294967296)", "max_completion_tokens"},
      {R"("min_tokens":-1)", "min_tokens"},
      {R"("skip_special_tokens":0)", "skip_special_tokens"},
      {R"("prompt_logprobs":0)", "prompt_logprobs"},
      {R"("store":"no")", "store"},
      {R"("top_k":-2)", "top_k"},
      {R"("seed":1e3)", "seed"},
      {R"("stop":"")", "stop"},
      {R"("stop":[1])", "stop"},
      {R"("stop_token_ids":[-1])", "stop_token_ids"},
      {R"("logit_bias":{"x":1})", "logit_bias"},
      {R"("logit_bias":{"1":"a"})", "logit_bias"},
      {R"("logit_bias":[])", "logit_bias"},
      {R"("stream":1)", "stream"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("top_logprobs":2)", "top_logprobs"},
      {R"("logprobs":true,"top_logprobs":129)", "top_logprobs"},
      {R"("tools":{})", "tools"},
      {R"("tools":[{"type":"function"}])", "tools[0]"},
      {R"("tools":[{"type":"function","function":{"name":"f"}},{"type":"x"}])", "tools[1]"},
      {R"("tools":[{"type":"function","function":{"name":""}}])", "tools[0]"},
      {R"("tools":["f"])", "tools[0]"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("response_format":"json")", "response_format"},
      {R"("response_format":{"type":"xml"})", "response_format.type"},
      {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
      {R"("messages":[])", "messages"},
      {R"("messages":[{"role":"user"},{}])", "messages[1]"},
      {R"("messages":[{"role":"wizard","content":"a"}])", "messages[0].role"},
      {R"("messages":[{"role":"User","content":"a"}])", "messages[0].role"},
      {R"("messages":[{"role":"user","content":7}])", "messages[0].content"},
      {R"("messages":[{"role":"user","content":{"type":"text","text":"a"}}])",
       "messages[0].content"},
      {R"("messages":[{"role":"user","content":["a"]}])", "messages[0].content[0]"},
      {R"("messages":[{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0]"},
      {R"("messages":[{"role":"user","content":[{"type":"text","text":"a"},
          {"type":"image_url","image_url":{"url":"data:,"}}]}])",
       "messages[0].content[1]"},
      {R"("prompt":"a")", "prompt"},
      {R"("frobnicate":1)", "frobnicate"},
  };
  for (const auto& [more, param] : wrong) refuses(*chat(more), param);
  refuses(*read("{\"messages\":[{\"role\":\"user\"}]}"), "model");
  refuses(*read("{\"model\":\"m\"}"), "messages");
  refuses(*completion("\"prompt\":[]"), "prompt");
  refuses(*completion("\"prompt\":[1,\"a\"]"), "prompt");
  refuses(*completion("\"prompt\":{}"), "prompt");
  refuses(*completion("\"prompt\":\"a\",\"best_of\":2"), "best_of");
  refuses(*completion("\"prompt\":\"a\",\"messages\":[]"), "messages");
}

TEST(ApiRead, EveryRoleOfTheInterfaceIsTaken) {
  for (const char* role : {"system", "developer", "user", "assistant", "tool", "function"})
    EXPECT_FALSE(
        chat(std::string(R"("messages":[{"content":"a","role":")") + role + "\"}]")->refused)
        << role;
}

TEST(ApiRead, TheNewerNameOfALimitWinsWhereverItStands) {
  const char* both[] = {
      R"("max_tokens":5,"max_completion_tokens":9)", R"("max_completion_tokens":9,"max_tokens":5)",
      R"("max_completion_tokens":9,"max_tokens":null)", R"("max_completion_tokens":9)"};
  for (const char* more : both) EXPECT_EQ(chat(more)->ask.max_tokens, 9u) << more;
  EXPECT_EQ(chat(R"("max_completion_tokens":null,"max_tokens":5)")->ask.max_tokens, 5u);
}

TEST(ApiRead, ABodyThatIsNoObject) {
  EXPECT_NE(read("{\"model\":")->refused->message.find("byte 9"), std::string::npos);
  EXPECT_TRUE(read("[]")->refused);
  EXPECT_TRUE(read("")->refused);
}

TEST(ApiRead, NeverSaysAStrangersWordsBack) {
  auto r = read("{\"What I said about Pim\":1}");
  ASSERT_TRUE(r->refused);
  EXPECT_EQ(r->refused->message.find("Pim"), std::string::npos);
  EXPECT_EQ(r->refused->param, "");
}

TEST(ApiRead, LabelsThatSingleSomeoneOutAreForTheLab) {
  for (const char* label : {"user", "priority", "cache_salt", "service_tier", "metadata"}) {
    std::string body = "{" + hello + ",\"" + label + "\":\"x\"}";
    refuses(*read(body), label);
    EXPECT_FALSE(read(body, api_call::chat, true)->refused) << label;
  }
}

TEST(ApiRead, NothingIsStoredAndWhoAsksForItIsTold) {
  for (bool lab : {false, true}) {
    auto kept = read("{" + hello + ",\"store\":true}", api_call::chat, lab);
    refuses(*kept, "store");
    EXPECT_NE(kept->refused->message.find("nothing of a request or answer is kept"),
              std::string::npos);
    EXPECT_FALSE(read("{" + hello + ",\"store\":false}", api_call::chat, lab)->refused);
  }
}

TEST(ApiRead, WhatIsNotBuiltIsCalledSo) {
  for (const char* more : {R"("prompt_logprobs":0)", R"("prompt_logprobs":5)"}) {
    auto r = chat(more);
    refuses(*r, "prompt_logprobs");
    EXPECT_NE(r->refused->message.find("is not built"), std::string::npos);
  }
  EXPECT_FALSE(chat(R"("prompt_logprobs":null)")->refused);
}

TEST(ApiRead, LimitsHoldAtAndAbove) {
  auto stops = [](size_t n) {
    std::string list;
    for (size_t i = 0; i < n; ++i) list += (i ? ",\"a\"" : "\"a\"");
    return chat("\"stop\":[" + list + "]");
  };
  EXPECT_FALSE(stops(limits::stops_max)->refused);
  EXPECT_TRUE(stops(limits::stops_max + 1)->refused);
  auto stop = [](size_t bytes) { return chat("\"stop\":\"" + std::string(bytes, 'a') + "\""); };
  EXPECT_FALSE(stop(limits::stop_bytes_max)->refused);
  EXPECT_TRUE(stop(limits::stop_bytes_max + 1)->refused);
  auto bias = [](size_t n) {
    std::string all;
    for (size_t i = 0; i < n; ++i) all += (i ? ",\"" : "\"") + std::to_string(i) + "\":1";
    return chat("\"logit_bias\":{" + all + "}");
  };
  EXPECT_FALSE(bias(limits::logit_bias_max)->refused);
  EXPECT_TRUE(bias(limits::logit_bias_max + 1)->refused);
}

}  // namespace
}  // namespace lethe
