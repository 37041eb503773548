#include "runtime/tokenizer/word_scanner.hpp"

#include <gtest/gtest.h>

#include <random>

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/pattern.hpp"
#include "runtime/tokenizer/split_patterns.hpp"
#include "tests/fuzz/word_patterns.hpp"

namespace lethe {
namespace {

struct both_ways {
  explicit both_ways(std::string_view expression)
      : regex(*pattern::regex(expression)), scanner(*word_scanner::of(expression)) {}

  /// Where the two first cut in different places; npos if nowhere.
  size_t differ(std::string_view text) const {
    match_session session(text.size(), std::pmr::get_default_resource());
    for (size_t from = 0; from < text.size();) {
      match m = regex.find(text, from, session);
      if (m.state != match::found || m.begin != from) return from;
      if (scanner.end(text, from) != m.end) return from;
      from = m.end;
    }
    return text.npos;
  }

  pattern regex;
  word_scanner scanner;
};

class WordScanner : public testing::TestWithParam<std::string_view> {
 protected:
  void same(std::string_view text) const {
    size_t at = both_.differ(text);
    ASSERT_EQ(at, text.npos) << testing::PrintToString(std::string(text.substr(at, 40)));
  }
  both_ways both_{GetParam()};
};

std::string utf8_of(char32_t c) {
  std::string out;
  utf8::append(out, c);
  return out;
}

TEST_P(WordScanner, KnowsEveryCharacter) {
  for (char32_t c = 0; c < 0x110000; c++) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string one = utf8_of(c);
    same("a" + one + "a1" + one + "1-" + one + "- " + one + one + " '" + one);
  }
}

TEST_P(WordScanner, KnowsEveryShortText) {
  static const std::string_view parts[] = {
      "a", "S", "1", "2", "-", "'", " ", "\t", "\n", "\r", "\u00A0", "\u4E2D", "\u0661", "\u0301"};
  constexpr size_t kinds = std::size(parts), length = 5;
  size_t all = 1;
  for (size_t i = 0; i < length; i++) all *= kinds;
  for (size_t n = 0; n < all; n++) {
    std::string text;
    for (size_t i = 0, rest = n; i < length; i++, rest /= kinds) text += parts[rest % kinds];
    same(text);
  }
}

TEST_P(WordScanner, KnowsWhatFollowsAnApostrophe) {
  std::vector<std::string> letters = {"\u017F", "\u212A", "\u00DF", " ", "'"};
  for (char c = 0x21; c < 0x7F; c++) letters.emplace_back(1, c);
  for (auto& a : letters)
    for (auto& b : letters) same("x'" + a + b + "y '" + a + b + " '" + a);
}

TEST_P(WordScanner, CutsLongTextsAlike) {
  static const std::string_view parts[] = {"word",
                                           "Don't",
                                           "'LL",
                                           "'ve",
                                           " ",
                                           "   ",
                                           "\n",
                                           "\r\n",
                                           "\t",
                                           "7",
                                           "123",
                                           "45678",
                                           "...",
                                           "=>",
                                           "\u00E9t\u00E9",
                                           "\u4E2D\u6587",
                                           "\u0967\u0968",
                                           "\u3000",
                                           "\u2028",
                                           "\U0001F600\u200D",
                                           "\u0301",
                                           "/",
                                           "'\u017F"};
  std::mt19937 random(7);
  for (int round = 0; round < 300; round++) {
    std::string text;
    while (text.size() < 3'000)
      if (random() % 4)
        text += parts[random() % std::size(parts)];
      else if (char32_t c = random() % (random() % 2 ? 0x3000 : 0x110000); c - 0xD800 >= 0x800)
        utf8::append(text, c);
    same(text);
  }
}

std::string named(const testing::TestParamInfo<std::string_view>& info) {
  return "Pattern" + std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(Known, WordScanner, testing::ValuesIn(word_patterns), named);

TEST(WordScannerOf, TakesNothingElse) {
  EXPECT_FALSE(word_scanner::of(""));
  for (std::string_view known : word_patterns) {
    EXPECT_FALSE(word_scanner::of(std::string(known) + "|x"));
    EXPECT_FALSE(word_scanner::of(known.substr(1)));
  }
  EXPECT_FALSE(word_scanner::of(split_patterns::find("qwen35")->patterns[0]));
}

}  // namespace
}  // namespace lethe
