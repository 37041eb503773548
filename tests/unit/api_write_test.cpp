// Answers in the form that OpenAI's clients read.
#include <gtest/gtest.h>
#include <simdjson.h>

#include "runtime/api/write_answer.hpp"

namespace lethe {
namespace {

answer_writer writer(api_call call, bool logprobs = false) {
  return {call, "id-1", "ember", 1700000000, logprobs, std::pmr::get_default_resource()};
}

std::string data_of(std::string_view event) {
  EXPECT_TRUE(event.starts_with("data: ")) << event;
  EXPECT_TRUE(event.ends_with("\n\n")) << event;
  return std::string(event.substr(6, event.size() - 8));
}

TEST(ApiWrite, AWholeChat) {
  said_choice c{.text = "Hi \"you\"\n", .finish_reason = "stop"};
  EXPECT_EQ(writer(api_call::chat).whole({&c, 1}, {3, 2}),
            R"({"id":"id-1","object":"chat.completion","created":1700000000,"model":"ember",)"
            R"("choices":[{"index":0,"message":{"role":"assistant","content":"Hi \"you\"\n"},)"
            R"("logprobs":null,"finish_reason":"stop"}],)"
            R"("usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}})");
}

TEST(ApiWrite, ToolCallsReplaceTheContent) {
  said_choice c{.tool_calls = R"([{"id":"c1"}])", .finish_reason = "tool_calls"};
  auto json = writer(api_call::chat).whole({&c, 1}, {});
  EXPECT_NE(json.find(R"("content":null,"tool_calls":[{"id":"c1"}])"), json.npos) << json;
}

TEST(ApiWrite, AStreamedChatNamesTheRoleOnce) {
  auto w = writer(api_call::chat);
  auto first = data_of(w.chunk({.text = ""}, true, false));
  EXPECT_NE(first.find(R"("object":"chat.completion.chunk")"), first.npos);
  EXPECT_NE(first.find(R"("delta":{"role":"assistant","content":""})"), first.npos) << first;
  auto next = data_of(w.chunk({.text = "Hi"}, false, true));
  EXPECT_NE(next.find(R"("delta":{"content":"Hi"},"logprobs":null,"finish_reason":null)"),
            next.npos);
  EXPECT_NE(next.find(R"("usage":null)"), next.npos);
  auto last = data_of(w.chunk({.finish_reason = "length"}, false, false));
  EXPECT_NE(last.find(R"("delta":{},"logprobs":null,"finish_reason":"length")"), last.npos) << last;
}

TEST(ApiWrite, UsageComesInAChunkWithoutChoices) {
  auto json = data_of(writer(api_call::chat).usage_chunk({5, 7}));
  EXPECT_NE(json.find(R"("choices":[],"usage":{"prompt_tokens":5)"), json.npos) << json;
}

TEST(ApiWrite, LogprobsCarryBytesWhereATokenIsHalfACharacter) {
  said_alternative top[] = {{"a", -0.5f}, {"\xc3", -1.5f}};
  said_token tokens[] = {{"a", -0.5f, top}};
  said_choice c{.text = "a", .finish_reason = "stop", .tokens = tokens};
  auto json = writer(api_call::chat, true).whole({&c, 1}, {});
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  ASSERT_FALSE(parser.parse(std::string_view(json)).get(root)) << json;
  auto first = root["choices"].at(0)["logprobs"]["content"].at(0);
  EXPECT_EQ(first["logprob"].get_double().value(), -0.5);
  EXPECT_EQ(first["top_logprobs"].at(1)["bytes"].at(0).get_uint64().value(), 0xc3u);
}

TEST(ApiWrite, CompletionsSayWhereEachTokenBegins) {
  said_token tokens[] = {{"ab", -1, {}}, {"c", -2, {}}};
  said_choice c{.text = "abc", .finish_reason = "stop", .tokens = tokens, .text_offset = 4};
  auto json = writer(api_call::completion, true).whole({&c, 1}, {});
  EXPECT_NE(json.find(R"("object":"text_completion")"), json.npos);
  EXPECT_NE(json.find(R"("tokens":["ab","c"],"token_logprobs":[-1)"), json.npos) << json;
  EXPECT_NE(json.find(R"("text_offset":[4,6])"), json.npos) << json;
}

TEST(ApiWrite, ErrorsAreInTheirForm) {
  EXPECT_EQ(
      to_json(wrong_param("n", "n must be an integer, 1 to {}", 128)),
      R"({"error":{"message":"n must be an integer, 1 to 128","type":"invalid_request_error",)"
      R"("param":"n","code":null}})");
}

}  // namespace
}  // namespace lethe
