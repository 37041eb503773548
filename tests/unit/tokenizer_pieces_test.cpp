#include <gtest/gtest.h>

#include "runtime/tokenizer/component_json.hpp"

namespace lethe {
namespace {

using texts = std::vector<std::string>;

texts cut(std::string_view json, std::string_view text, bool first = true) {
  simdjson::dom::parser parser;
  auto steps = json::read_pre_tokenizers(parser.parse(simdjson::padded_string(json)).value());
  EXPECT_TRUE(steps) << (steps ? "" : steps.why().text);
  texts out;
  if (!steps) return out;
  auto* memory = std::pmr::new_delete_resource();
  pre_tokenizers::pieces pieces(memory);
  pieces.text = text;
  pieces.cuts.push_back({0, uint32_t(text.size()), first});
  match_session session(text.size(), memory);
  EXPECT_TRUE(pre_tokenizers::apply(*steps, pieces, session));
  for (auto p : pieces.cuts) out.emplace_back(pieces.at(p));
  return out;
}

std::string refusal(std::string_view json) {
  simdjson::dom::parser parser;
  auto steps = json::read_pre_tokenizers(parser.parse(simdjson::padded_string(json)).value());
  return steps ? "" : steps.why().text;
}

texts split(std::string_view behavior, std::string_view text, bool invert = false,
            std::string_view pattern = R"({"String":"-"})") {
  return cut(fmt::format(R"({{"type":"Split","pattern":{},"behavior":"{}","invert":{}}})", pattern,
                         behavior, invert),
             text);
}

// The examples of Hugging Face's documentation of SplitDelimiterBehavior.
TEST(Split, HasFiveBehaviors) {
  constexpr auto text = "the-final--countdown";
  EXPECT_EQ(split("Removed", text), (texts{"the", "final", "countdown"}));
  EXPECT_EQ(split("Isolated", text), (texts{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split("MergedWithPrevious", text), (texts{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split("MergedWithNext", text), (texts{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split("Contiguous", text), (texts{"the", "-", "final", "--", "countdown"}));
}

TEST(Split, BehavesAtTheEnds) {
  EXPECT_EQ(split("MergedWithPrevious", "-a-"), (texts{"-", "a-"}));
  EXPECT_EQ(split("MergedWithNext", "-a-"), (texts{"-a", "-"}));
  EXPECT_EQ(split("Removed", "-"), texts{});
  EXPECT_EQ(split("Isolated", ""), texts{});
}

TEST(Split, InvertsWhatMatches) {
  EXPECT_EQ(split("Removed", "a-b--", true), (texts{"-", "-", "-"}));
  EXPECT_EQ(split("Contiguous", "a--b", true), (texts{"a", "--", "b"}));
}

TEST(Split, CutsByPatternsAlsoWhereTheyMatchNothing) {
  EXPECT_EQ(split("Isolated", "ab12c", false, R"({"Regex":"\\d+"})"), (texts{"ab", "12", "c"}));
  EXPECT_EQ(split("Isolated", "1234567", false, R"x({"Regex":"(?=(\\d{3})+(?!\\d))"})x"),
            (texts{"1", "234", "567"}));
}

TEST(ByteLevel, CutsAsGpt2AndSpellsBytes) {
  constexpr auto plain = R"({"type":"ByteLevel","add_prefix_space":false})";
  EXPECT_EQ(cut(plain, "I'm é\n\nx  y"), (texts{"I", "'m", "ĠÃ©", "Ċ", "Ċ", "x", "Ġ", "Ġy"}));
  EXPECT_EQ(cut(R"({"type":"ByteLevel","add_prefix_space":true})", "a b"), (texts{"Ġa", "Ġb"}));
  EXPECT_EQ(cut(R"({"type":"ByteLevel","add_prefix_space":true})", " a"), (texts{"Ġa"}));
  EXPECT_EQ(cut(R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})", "a b"),
            (texts{"aĠb"}));
}

TEST(Metaspace, PrependsBySchemeAndSplitsBeforeEachSpace) {
  auto with = [](std::string_view rest) {
    return fmt::format(R"({{"type":"Metaspace","replacement":"▁"{}}})", rest);
  };
  auto always = with(R"(,"prepend_scheme":"always")"), first = with(R"(,"prepend_scheme":"first")");
  EXPECT_EQ(cut(always, "a b"), (texts{"▁a", "▁b"}));
  EXPECT_EQ(cut(always, " a  b"), (texts{"▁a", "▁", "▁b"}));
  EXPECT_EQ(cut(first, "a"), (texts{"▁a"}));
  EXPECT_EQ(cut(first, "a", false), (texts{"a"}));
  EXPECT_EQ(cut(with(R"(,"prepend_scheme":"never")"), "a b"), (texts{"a", "▁b"}));
  EXPECT_EQ(cut(with(R"(,"add_prefix_space":false)"), "a"), (texts{"a"}));
  EXPECT_EQ(cut(with(""), "a"), (texts{"▁a"}));
  EXPECT_EQ(cut(with(R"(,"split":false)"), "a b"), (texts{"▁a▁b"}));
  EXPECT_NE(refusal(with(R"(,"prepend_scheme":"often")")), "");
}

TEST(PreTokenizer, CutsDigitsPunctuationAndWhiteSpace) {
  EXPECT_EQ(cut(R"({"type":"Digits","individual_digits":true})", "a12½"),
            (texts{"a", "1", "2", "½"}));
  EXPECT_EQ(cut(R"({"type":"Digits","individual_digits":false})", "a12b"), (texts{"a", "12", "b"}));
  EXPECT_EQ(cut(R"({"type":"Punctuation"})", "a!?。$"), (texts{"a", "!", "?", "。", "$"}));
  EXPECT_EQ(cut(R"({"type":"Punctuation","behavior":"Contiguous"})", "a!?b"),
            (texts{"a", "!?", "b"}));
  EXPECT_EQ(cut(R"({"type":"Whitespace"})", "ab_1, \u3000c!?"), (texts{"ab_1", ",", "c", "!?"}));
  EXPECT_EQ(cut(R"({"type":"WhitespaceSplit"})", " a,\u3000b "), (texts{"a,", "b"}));
  EXPECT_EQ(cut(R"({"type":"BertPreTokenizer"})", "a, b"), (texts{"a", ",", "b"}));
  EXPECT_EQ(cut(R"({"type":"CharDelimiterSplit","delimiter":"|"})", "a|b"), (texts{"a", "b"}));
}

TEST(PreTokenizer, RunsSequencesInOrder) {
  EXPECT_EQ(cut(R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},
                {"type":"Metaspace","replacement":"▁","prepend_scheme":"first"}]})",
                "a b"),
            (texts{"▁a", "b"}));
}

TEST(PreTokenizer, RefusesByNameWhatItDoesNotKnow) {
  EXPECT_EQ(refusal(R"({"type":"UnicodeScripts"})"), "pre_tokenizer UnicodeScripts: not supported");
  EXPECT_NE(refusal(R"x({"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"})x")
                .find("does not compile"),
            std::string::npos);
  EXPECT_EQ(refusal(R"({"type":"Split","pattern":{"String":"a"},"behavior":"Never"})"),
            "pre_tokenizer Split: behavior Never is not supported");
}

}  // namespace
}  // namespace lethe
