// Calls of tools, read out of what models write.
#include <gtest/gtest.h>

#include "runtime/api/pythonic_calls.hpp"
#include "runtime/json/json_slice.hpp"

namespace lethe {
namespace {

/// What was read, in one line: words, then name(arguments) of each call.
std::string shown(const tool_reader& r) {
  std::string out(r.content());
  for (const auto& c : r.calls()) out.append("|").append(c.name).append(c.arguments);
  return out;
}

std::string read_whole(tool_format format, std::string_view text) {
  tool_reader r(format, std::pmr::get_default_resource());
  r.read(text, true);
  return shown(r);
}

/// The same at once, cut at each place, and byte by byte.
std::string read_all_ways(tool_format format, std::string_view text) {
  std::string whole = read_whole(format, text);
  auto* memory = std::pmr::get_default_resource();
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    tool_reader r(format, memory);
    r.read(text.substr(0, cut), false);
    r.read(text, false);
    r.read(text, true);
    EXPECT_EQ(shown(r), whole) << "cut at " << cut << " of: " << text;
  }
  tool_reader slow(format, memory);
  std::string said;
  for (size_t end = 0; end <= text.size(); ++end) {
    slow.read(text.substr(0, end), false);
    EXPECT_TRUE(slow.content().starts_with(said));
    said = slow.content();
  }
  slow.read(text, true);
  slow.read(text, true);
  EXPECT_TRUE(slow.content().starts_with(said));
  EXPECT_EQ(shown(slow), whole) << "byte by byte: " << text;
  return whole;
}

struct sample {
  std::string_view text, expected;
};

void expect_samples(tool_format format, std::span<const sample> samples) {
  for (const auto& s : samples) EXPECT_EQ(read_all_ways(format, s.text), s.expected) << s.text;
}

TEST(ToolCalls, HermesCallsStandInTags) {
  const sample samples[] = {
      {"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", "|f{\"a\": 1}"},
      {"I look.\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "I look.|f{}"},
      {"<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"</tool_call>\"}}</tool_call>\n"
       "<tool_call>{\"name\":\"g\",\"arguments\":{\"b\":[{}]}}</tool_call>\n",
       "|f{\"a\":\"</tool_call>\"}|g{\"b\":[{}]}"},
      {"<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call> and then", " and then|f{}"},
      {"<tool_call>{\"name\":\"f\"}</tool_call> then \n", " then \n|f{}"},
      {"<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":2}\"}</tool_call>", "|f{\"a\":2}"},
      {"<tool_call>{\"name\":\"f\"}</tool_call>", "|f{}"},
      {"<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"\\\"}{\"}}", "|f{\"a\":\"\\\"}{\"}"},
      {"<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool", "|f{}"},
  };
  expect_samples(tool_format::hermes, samples);
}

TEST(ToolCalls, WhatIsNoCallInTagsIsContent) {
  for (std::string_view text : {
           "",
           "plain words",
           " blanks around \n\n",
           "a < b, <tool, <tool_cal",
           "<tool_call>",
           "<tool_call>  ",
           "<tool_call>words</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}",
           "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1]}</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": }}</tool_call>",
           "<tool_call>{\"name\": 7, \"arguments\": {}}</tool_call>",
           "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": \"[1]\"}</tool_call>",
           "<tool_call>{\"arguments\": {}}</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": {}} more</tool_call>",
           "<tool_call>[{\"name\": \"f\", \"arguments\": {}}]</tool_call>",
       })
    EXPECT_EQ(read_all_ways(tool_format::hermes, text), text);
}

TEST(ToolCalls, AMalformedCallDoesNotHideAGoodOne) {
  EXPECT_EQ(read_all_ways(tool_format::hermes,
                          "<tool_call>{broken}</tool_call> "
                          "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>"),
            "<tool_call>{broken}</tool_call>|f{}");
}

TEST(ToolCalls, MistralListsThemBehindAMark) {
  const sample samples[] = {
      {"[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}}]", "|f{\"a\": 1}"},
      {"[TOOL_CALLS] [{\"name\":\"f\",\"arguments\":{}}, {\"name\":\"g\",\"arguments\":{}}]\n",
       "|f{}|g{}"},
      {"Well. [TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}}] done", "Well. done|f{}"},
      {"[TOOL_CALLS][]", "[TOOL_CALLS][]"},
      {"[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}}, 7]",
       "[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}}, 7]"},
      {"[TOOL_CALLS][{\"name\":\"f\",", "[TOOL_CALLS][{\"name\":\"f\","},
      {"[TOOL_CALLS]{\"name\":\"f\"}", "[TOOL_CALLS]{\"name\":\"f\"}"},
      {"[1] and [TOOLS", "[1] and [TOOLS"},
  };
  expect_samples(tool_format::mistral, samples);
}

TEST(ToolCalls, LlamaWritesAnObjectAndNothingElse) {
  const sample samples[] = {
      {"{\"name\": \"f\", \"parameters\": {\"a\": \"x\"}}", "|f{\"a\": \"x\"}"},
      {"<|python_tag|>{\"name\": \"f\", \"parameters\": {}}", "|f{}"},
      {"\n{\"name\":\"f\",\"parameters\":{}}; {\"name\":\"g\",\"parameters\":{}} ", "|f{}|g{}"},
      {"<|python_start|>{\"name\":\"f\",\"arguments\":{}}<|python_end|>", "|f{}"},
      {"{\"name\":\"f\",\"parameters\":{}} is how", "{\"name\":\"f\",\"parameters\":{}} is how"},
      {"Call {\"name\":\"f\",\"parameters\":{}}", "Call {\"name\":\"f\",\"parameters\":{}}"},
      {"{\"name\": \"Bob\"}", "{\"name\": \"Bob\"}"},
      {"{\"name\":\"f\",\"parameters\":{}", "{\"name\":\"f\",\"parameters\":{}"},
      {"{\"name\":\"f\",\"parameters\":{}};{\"na", "{\"name\":\"f\",\"parameters\":{}};{\"na"},
      {"<|python_tag|>search.call(query=\"x\")", "<|python_tag|>search.call(query=\"x\")"},
      {"<|python_tag|>", "<|python_tag|>"},
      {"<|pyth", "<|pyth"},
      {"", ""},
      {" \n", " \n"},
  };
  expect_samples(tool_format::llama_json, samples);
}

TEST(ToolCalls, WordsFlowWhileAnAnswerCanBeNoCall) {
  tool_reader llama(tool_format::llama_json, std::pmr::get_default_resource());
  llama.read("It is ", false);
  EXPECT_EQ(llama.content(), "It is ");
  tool_reader hermes(tool_format::hermes, std::pmr::get_default_resource());
  hermes.read("It is <tool", false);
  EXPECT_EQ(hermes.content(), "It is");
  hermes.read("It is <tools>, or", false);
  EXPECT_EQ(hermes.content(), "It is <tools>, or");
}

TEST(ToolCalls, ACallIsSaidAsSoonAsItIsWhole) {
  tool_reader r(tool_format::hermes, std::pmr::get_default_resource());
  r.read("<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>", false);
  EXPECT_EQ(r.calls().size(), 1u);
}

TEST(ToolCalls, PythonicCallsHaveLiteralsAsArguments) {
  const sample samples[] = {
      {"[f(a=1, b=\"x\")]", "|f{\"a\":1,\"b\":\"x\"}"},
      {"[f(), g.h(x=-2.5e3)]", "|f{}|g.h{\"x\":-2.5e3}"},
      {"<|python_start|>[f(a=True, b=False, c=None,)]<|python_end|>",
       "|f{\"a\":true,\"b\":false,\"c\":null}"},
      {"[f(a=['it\\'s', \"]\"], b={'k': [1, {}], \"l\": \"\\n\\u00e9\\x41\\d\"})]",
       "|f{\"a\":[\"it's\",\"]\"],\"b\":{\"k\":[1,{}],\"l\":\"\\n\u00e9A\\\\d\"}}"},
      {"[ f ( a = [ ] ) ]\n", "|f{\"a\":[]}"},
      {"[1] says so", "[1] says so"},
      {"[f(1)]", "[f(1)]"},
      {"[f(a=g())]", "[f(a=g())]"},
      {"[f(a=01)]", "[f(a=01)]"},
      {"[f(a='x]", "[f(a='x]"},
      {"[f(a=\"\\ud8\")]", "[f(a=\"\\ud8\")]"},
      {"[f(a=1) g(b=2)]", "[f(a=1) g(b=2)]"},
      {"[f(a=1]", "[f(a=1]"},
      {"[f(a=1 b=2)]", "[f(a=1 b=2)]"},
      {"[f(a=1)] is a call", "[f(a=1)] is a call"},
      {"[]", "[]"},
  };
  expect_samples(tool_format::pythonic, samples);
}

TEST(ToolCalls, PythonicNestingIsBounded) {
  auto nested = [](size_t deep) {
    return "[f(a=" + std::string(deep, '[') + std::string(deep, ']') + ")]";
  };
  std::pmr::vector<tool_call> calls;
  EXPECT_TRUE(read_pythonic(nested(json_depth_max - 1), calls));
  EXPECT_TRUE(check_json(calls.front().arguments)) << calls.front().arguments;
  EXPECT_FALSE(read_pythonic(nested(json_depth_max), calls));
  EXPECT_FALSE(read_pythonic(nested(100'000), calls));
}

TEST(ToolCalls, HalvesOfSurrogatePairsBecomeReplacements) {
  EXPECT_EQ(read_whole(tool_format::pythonic, "[f(a='\\ud83d', b='\\U0001F600')]"),
            "|f{\"a\":\"\uFFFD\",\"b\":\"\U0001F600\"}");
}

TEST(ToolCalls, WithoutAFormatAllIsContent) {
  EXPECT_EQ(read_all_ways(tool_format::none, "<tool_call>{\"name\":\"f\"}</tool_call>"),
            "<tool_call>{\"name\":\"f\"}</tool_call>");
}

TEST(ToolCalls, TheTemplateShowsTheFormat) {
  EXPECT_EQ(tool_format_of("{{ message['content'] }}"), tool_format::none);
  EXPECT_EQ(tool_format_of("... within <tool_call></tool_call> XML tags"), tool_format::hermes);
  EXPECT_EQ(tool_format_of("{{- '[TOOL_CALLS][' }}"), tool_format::mistral);
  EXPECT_EQ(tool_format_of("{{- '<|python_tag|>' + call }}"), tool_format::llama_json);
  EXPECT_EQ(tool_format_of("{\"name\": function name, \"parameters\": dictionary of argument"),
            tool_format::llama_json);
  EXPECT_EQ(tool_format_of("in the format of [func_name1(params_name1=params_value1)]"),
            tool_format::pythonic);
}

TEST(ToolCalls, IdsAreRandomAndAsTheTemplatesWantThem) {
  for (auto [format, text] :
       {std::pair(tool_format::hermes, "<tool_call>{\"name\":\"f\"}</tool_call>"),
        std::pair(tool_format::mistral, "[TOOL_CALLS][{\"name\":\"f\"}]")}) {
    tool_reader one(format, std::pmr::get_default_resource());
    tool_reader other(format, std::pmr::get_default_resource());
    one.read(text, true);
    other.read(text, true);
    ASSERT_EQ(one.calls().size(), 1u);
    EXPECT_NE(one.calls()[0].id, other.calls()[0].id);
    if (format == tool_format::mistral)
      EXPECT_EQ(one.calls()[0].id.size(), 9u);
    else
      EXPECT_TRUE(one.calls()[0].id.starts_with("call_"));
  }
}

TEST(ToolCalls, TheyAreSaidAsOpenAisClientsReadThem) {
  auto* memory = std::pmr::get_default_resource();
  tool_call c{"call_1", "f", "{\"a\": \"x\"}"};
  EXPECT_EQ(tool_calls_json({&c, 1}, 0, false, memory),
            R"([{"id":"call_1","type":"function","function":{"name":"f",)"
            R"("arguments":"{\"a\": \"x\"}"}}])");
  EXPECT_TRUE(
      tool_calls_json({&c, 1}, 3, true, memory).starts_with(R"([{"index":3,"id":"call_1")"));
}

}  // namespace
}  // namespace lethe
