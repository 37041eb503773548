// One call of the API from body to answer, with a model whose answers are noise.
#include <gtest/gtest.h>
#include <simdjson.h>

#include "runtime/base/limits.hpp"
#include "runtime/serve/api_request.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

struct collected final : answer_sink {
  int status = 0;
  std::string body;
  void head(const answer_head& h) override { status = h.status; }
  void piece(std::string_view bytes) override { body.append(bytes); }
};

class ApiRequest : public testing::Test {
 protected:
  void SetUp() override {
    auto model =
        served_model::open({.path = std::string(places::source) + "/models/tiny", .threads = 1});
    ASSERT_TRUE(model) << model.why().text;
    auto serving = engine::start((*model)->weights->weights(), {.threads = 1});
    ASSERT_TRUE(serving) << serving.why().text;
    engine_ = *std::move(serving);
    service_ = {*model, engine_.get(), {.labels_allowed = true}};
  }

  collected ask(api_call call, const std::string& body) {
    auto made = api_request::make(service_, body.size());
    EXPECT_TRUE(made);
    collected out;
    (*made)->begin(call, body, nullptr, out);
    while (!(*made)->over()) (*made)->pump(out);
    (*made)->forget();
    return out;
  }
  collected complete(const std::string& more) {
    return ask(api_call::completion,
               R"({"model":"tiny","prompt":"Once","temperature":0,"max_tokens":4)" + more + "}");
  }
  collected chat(const std::string& messages) {
    return ask(api_call::chat,
               R"({"model":"tiny","temperature":0,"max_tokens":4,"messages":)" + messages + "}");
  }
  /// What of an answer follows from the prompt alone: the tokens and how many there were.
  static std::string said(const collected& got) {
    EXPECT_EQ(got.status, 200) << got.body;
    size_t from = got.body.find(R"("choices")");
    return from == got.body.npos ? got.body : got.body.substr(from);
  }
  std::string wrong_param_of(const std::string& more) {
    auto got = complete(more);
    EXPECT_EQ(got.status, 400) << more;
    simdjson::dom::parser parser;
    std::string_view param;
    EXPECT_FALSE(parser.parse(got.body)["error"]["param"].get(param)) << got.body;
    return std::string(param);
  }

  /// "TEXT, so many tokens, why it ended" of a completion's only choice.
  std::string ended(const std::string& more) {
    auto got = complete(more);
    EXPECT_EQ(got.status, 200) << got.body;
    simdjson::dom::parser parser;
    simdjson::dom::element root;
    std::string_view text, reason;
    uint64_t tokens = 0;
    EXPECT_FALSE(parser.parse(got.body).get(root));
    EXPECT_FALSE(root["choices"].at(0)["text"].get(text)) << got.body;
    EXPECT_FALSE(root["choices"].at(0)["finish_reason"].get(reason));
    EXPECT_FALSE(root["usage"]["completion_tokens"].get(tokens));
    return fmt::format("{}, {}, {}", text, tokens, reason);
  }

  std::unique_ptr<engine> engine_;
  api_service service_;
};

TEST_F(ApiRequest, Answers) {
  auto got = complete("");
  EXPECT_EQ(got.status, 200) << got.body;
  EXPECT_NE(got.body.find(R"("finish_reason":"length")"), got.body.npos) << got.body;
}

TEST_F(ApiRequest, RefusalsNameTheParameterThatIsOutOfRange) {
  EXPECT_EQ(complete(R"(,"presence_penalty":2,"frequency_penalty":-2)").status, 200);
  EXPECT_EQ(wrong_param_of(R"(,"temperature":101)"), "temperature");
  EXPECT_EQ(wrong_param_of(R"(,"top_p":1.1)"), "top_p");
  EXPECT_EQ(wrong_param_of(R"(,"presence_penalty":2.1)"), "presence_penalty");
  EXPECT_EQ(wrong_param_of(R"(,"frequency_penalty":-2.1)"), "frequency_penalty");
  EXPECT_EQ(wrong_param_of(R"(,"logit_bias":{"512":1})"), "logit_bias");
  EXPECT_EQ(wrong_param_of(R"(,"logit_bias":{"1":101})"), "logit_bias");
  EXPECT_EQ(wrong_param_of(R"(,"prompt":[512])"), "prompt");
}

/// A form that takes more than a token may after some a's (64): asking again would not help.
TEST_F(ApiRequest, AFormTooWideIsTheAskersMistake) {
  for (const char* wide : {"(.*a.{300}){3}", "(.*a.{1000}){50}", ".*[ae].{12}x?.{500}"}) {
    std::string form =
        std::string(R"(,"max_tokens":400,"logit_bias":{"64":100},"guided_regex":")") + wide + "\"";
    auto whole = complete(form);
    EXPECT_EQ(whole.status, 400) << wide << whole.body;
    EXPECT_NE(whole.body.find(R"("param":"guided_regex")"), whole.body.npos) << whole.body;
    EXPECT_NE(whole.body.find(std::to_string(limits::grammar_mask_steps_max)), whole.body.npos);
    auto stream = complete(form + R"(,"stream":true)");
    EXPECT_EQ(stream.status, 200) << wide;
    EXPECT_NE(stream.body.find(R"("type":"invalid_request_error")"), stream.body.npos);
    EXPECT_EQ(stream.body.find("engine_lost"), stream.body.npos) << stream.body;
  }
  EXPECT_EQ(complete(R"(,"logit_bias":{"64":100},"guided_regex":"a{4}")").status, 200);
}

/// Token 64 is an "a", and is drawn wherever it may be.
TEST_F(ApiRequest, NoStopEndsItBeforeItsLeastTokens) {
  const std::string a = R"(,"logit_bias":{"64":100})";
  EXPECT_EQ(ended(a + R"(,"stop":"a")"), ", 1, stop");
  EXPECT_EQ(ended(a + R"(,"stop":"a","min_tokens":3)"), "aa, 3, stop");
  EXPECT_EQ(ended(a + R"(,"stop":"aa","min_tokens":3)"), "a, 3, stop") << "it began before";
  EXPECT_EQ(ended(a + R"(,"stop":"aaaaa","min_tokens":3)"), "aaaa, 4, length");
  EXPECT_EQ(ended(a + R"(,"stop_token_ids":[64])"), ", 0, stop");
  auto later = ended(a + R"(,"stop_token_ids":[64],"min_tokens":3)");
  EXPECT_NE(later.find(", 3, stop"), later.npos) << later;
  // In a form that may end anywhere, token 70 ends it.
  const std::string form =
      R"(,"logit_bias":{"70":100,"64":50},"stop_token_ids":[70],"guided_regex":"a*")";
  EXPECT_EQ(ended(form), ", 0, stop");
  EXPECT_EQ(ended(form + R"(,"min_tokens":3)"), "aaa, 3, stop");
}

TEST_F(ApiRequest, TheLeastTokensAreWithinTheMost) {
  EXPECT_EQ(ended(R"(,"min_tokens":4,"logit_bias":{"64":100})"), "aaaa, 4, length");
  EXPECT_EQ(wrong_param_of(R"(,"min_tokens":5)"), "min_tokens");
  uint32_t more = engine_->config().default_max_tokens + 1;
  auto longer = ask(api_call::completion,
                    fmt::format(R"({{"model":"tiny","prompt":"Once","logit_bias":{{"64":100}},)"
                                R"("min_tokens":{}}})",
                                more));
  EXPECT_NE(longer.body.find(fmt::format(R"("completion_tokens":{})", more)), longer.body.npos)
      << longer.body;
}

TEST_F(ApiRequest, PartsOfTextAreReadAsTheirLines) {
  auto text = said(chat(R"([{"role":"user","content":"Hi\nyou"}])"));
  EXPECT_EQ(said(chat(R"([{"role":"user","content":[{"type":"text","text":"Hi"},
                          {"text":"you","type":"text"}]}])")),
            text);
  EXPECT_NE(said(chat(R"([{"role":"user","content":"Hi"}])")), text);
}

TEST_F(ApiRequest, AMessageWithoutContentSaysNothing) {
  auto turns = [this](const std::string& assistant) {
    return said(chat(R"([{"role":"user","content":"Hi"},{"role":"assistant")" + assistant +
                     R"(},{"role":"tool","tool_call_id":"a","content":"7"}])"));
  };
  const std::string calls =
      R"(,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}])";
  auto empty = turns(R"(,"content":"")" + calls);
  EXPECT_EQ(turns(R"(,"content":null)" + calls), empty);
  EXPECT_EQ(turns(R"(,"content":[])" + calls), empty);
  EXPECT_EQ(turns(calls), empty);
  EXPECT_NE(turns(R"(,"content":"a")" + calls), empty);
}

TEST_F(ApiRequest, TheMostAnswersAreOneNumber) {
  uint32_t running = engine_->config().running;
  ASSERT_LT(running, limits::choices_max);
  EXPECT_EQ(complete(fmt::format(R"(,"n":{})", running)).status, 200);
  for (uint32_t n : {running + 1, limits::choices_max, limits::choices_max + 1}) {
    auto got = complete(fmt::format(R"(,"n":{})", n));
    EXPECT_EQ(got.status, 400);
    EXPECT_NE(got.body.find(R"("param":"n")"), got.body.npos) << got.body;
    EXPECT_NE(got.body.find(fmt::format("1 to {}", running)), got.body.npos) << got.body;
  }
}

}  // namespace
}  // namespace lethe
