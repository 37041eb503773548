#include <gtest/gtest.h>
#include <time.h>

#include "runtime/tokenizer/component_json.hpp"

namespace lethe {
namespace {

using texts = std::vector<std::string>;

texts cut(std::string_view json, std::string_view text, bool first = true) {
  simdjson::dom::parser parser;
  auto steps = json::read_pre_tokenizers(parser.parse(simdjson::padded_string(json)).value());
  EXPECT_TRUE(steps) << (steps ? "" : steps.why().text);
  if (!steps) return {};
  auto* memory = std::pmr::new_delete_resource();
  match_session session(text.size(), memory);
  struct : pre_tokenizers::taker {
    void take(std::span<const pre_tokenizers::piece> some) override {
      for (const auto& p : some) words.emplace_back(p.text);
    }
    texts words;
  } taken;
  EXPECT_TRUE(pre_tokenizers::cutter(*steps, session, taken, text.size(), memory).cut(text, first));
  // Also where every piece waits for nobody.
  texts words = std::exchange(taken.words, {});
  EXPECT_TRUE(pre_tokenizers::cutter(*steps, session, taken, 1, memory).cut(text, first));
  EXPECT_EQ(taken.words, words);
  return words;
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

/// More than are cut at once, and written anew twice.
TEST(PreTokenizer, CutsManyPiecesAsItCutsFew) {
  constexpr auto steps = R"({"type":"Sequence","pretokenizers":[
      {"type":"Split","pattern":{"String":"-"},"behavior":"MergedWithPrevious"},
      {"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":false},
      {"type":"Digits","individual_digits":true},
      {"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
  const texts few = cut(steps, "é 12-");
  EXPECT_EQ(few, (texts{"âĸģÃ©âĸģ", "1", "2", "-"}));
  for (size_t times : {127u, 128u, 129u, 511u, 512u, 513u, 2000u}) {
    std::string text;
    texts expected;
    for (size_t i = 0; i < times; ++i) {
      text += "é 12-";
      expected.insert(expected.end(), few.begin(), few.end());
    }
    EXPECT_EQ(cut(steps, text), expected) << times;
  }
}

TEST(PreTokenizer, TakesNoMoreStepsThanItsLimit) {
  auto steps = [](size_t count) {
    std::string all;
    for (size_t i = 0; i < count; ++i) all += R"({"type":"Digits","individual_digits":true},)";
    all.pop_back();
    return fmt::format(R"({{"type":"Sequence","pretokenizers":[{}]}})", all);
  };
  for (size_t count : {pre_tokenizers::steps_max - 1, pre_tokenizers::steps_max})
    EXPECT_EQ(cut(steps(count), "a12"), (texts{"a", "1", "2"})) << count;
  EXPECT_EQ(refusal(steps(pre_tokenizers::steps_max + 1)),
            "pre_tokenizer: 65 steps; at most 64 are supported");
}

/// A second and two microseconds a byte are for matching alone.
TEST(PreTokenizer, WordsMayTakeTheirTime) {
  simdjson::dom::parser parser;
  simdjson::padded_string json(
      std::string_view(R"({"type":"Split","pattern":{"Regex":"\\d+"},"behavior":"Isolated"})"));
  auto steps = json::read_pre_tokenizers(parser.parse(json).value());
  ASSERT_TRUE(steps) << steps.why().text;
  std::string text;
  for (uint32_t i = 0; i < 2000; ++i) text += "a1";
  struct : pre_tokenizers::taker {
    void take(std::span<const pre_tokenizers::piece> some) override {
      words += some.size();
      timespec t{};
      do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
      while (double(t.tv_sec) + 1e-9 * double(t.tv_nsec) < until);
    }
    double until = 0;
    size_t words = 0;
  } slow;
  match_session session(text.size(), std::pmr::new_delete_resource());
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  slow.until = double(now.tv_sec) + 1e-9 * double(now.tv_nsec) + 1.2;
  pre_tokenizers::cutter cutter(*steps, session, slow, text.size(),
                                std::pmr::new_delete_resource());
  EXPECT_TRUE(cutter.cut(text, true));
  EXPECT_EQ(slow.words, 4000u);
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
