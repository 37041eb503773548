#include "runtime/tokenizer/unicode.hpp"

#include <gtest/gtest.h>

#include "runtime/base/utf8.hpp"

namespace lethe {
namespace {

std::string normal(std::string_view text, unicode::form f) {
  std::pmr::string out;
  unicode::normalize(text, f, out);
  return std::string(out);
}

std::string mended(std::string_view bytes, size_t* taken = nullptr) {
  std::string out;
  size_t n = utf8::append_mended(out, bytes, taken != nullptr);
  if (taken) *taken = n;
  return out;
}

using unicode::form;

TEST(Unicode, ComposesAndDecomposesCanonically) {
  EXPECT_EQ(normal("cafe\u0301 x", form::nfc), "caf\u00E9 x");
  EXPECT_EQ(normal("caf\u00E9", form::nfd), "cafe\u0301");
  EXPECT_EQ(normal("\u1E69", form::nfd), "s\u0323\u0307");  // in steps
  EXPECT_EQ(normal("\u212B", form::nfc), "\u00C5");         // a singleton never comes back
  EXPECT_EQ(normal("\u0958", form::nfc), "\u0915\u093C");   // excluded from composition
  EXPECT_EQ(normal("", form::nfc), "");
}

TEST(Unicode, OrdersMarksByClassAndKeepsEqualOnesInPlace) {
  EXPECT_EQ(normal("a\u0307\u0323", form::nfd), "a\u0323\u0307");
  EXPECT_EQ(normal("a\u0301\u0300", form::nfd), "a\u0301\u0300");
  EXPECT_EQ(normal("a\u0301\u0300", form::nfc), "\u00E1\u0300");
  EXPECT_EQ(normal("\u0323\u0307", form::nfc), "\u0323\u0307");  // no starter before them
}

TEST(Unicode, ComposesHangulByArithmetic) {
  EXPECT_EQ(normal("\u1112\u1161\u11AB", form::nfc), "\uD55C");
  EXPECT_EQ(normal("\uD55C\uAE00", form::nfd), "\u1112\u1161\u11AB\u1100\u1173\u11AF");
}

// What a text taken apart becomes is composed mark by mark; most of a text as it is is passed on.
TEST(Unicode, ComposesAnyCharacterAsWhatItIsMadeOf) {
  for (auto [composed, apart] : {std::pair(form::nfc, form::nfd), {form::nfkc, form::nfkd}})
    for (std::string_view behind : {"", "\u0301", "\u3099", "\u11A8", "x"})
      for (char32_t c = 0; c < 0x30000; c++) {
        if (c >= 0xD800 && c < 0xE000) continue;
        std::string text = "e";
        utf8::append(text, c);
        text += behind;
        std::string parts = normal(text, apart), whole = normal(text, composed);
        ASSERT_EQ(normal(parts, composed), whole) << std::hex << uint32_t(c);
        ASSERT_EQ(normal(whole, composed), whole) << std::hex << uint32_t(c);
        ASSERT_EQ(normal(whole, apart), parts) << std::hex << uint32_t(c);
      }
}

TEST(Unicode, ReplacesCompatibilityCharactersOnlyWhenAsked) {
  EXPECT_EQ(normal("\uFB01 \u2460 \u00BD", form::nfkc), "fi 1 1\u20442");
  EXPECT_EQ(normal("\uFB01", form::nfc), "\uFB01");
  EXPECT_EQ(normal("\u1E9B\u0323", form::nfkc), "\u1E69");
  EXPECT_EQ(normal("\uFF76\uFF9E", form::nfkc), "\u30AC");
}

TEST(Unicode, LowersOneCharacterAtATime) {
  std::pmr::string out;
  for (char32_t c : {U'A', U'\u00C9', U'\u0130', U'\u03A3', U'\u1E9E', U'1'})
    unicode::append_lower(c, out);
  EXPECT_EQ(out, "a\u00E9i\u0307\u03C3\u00DF1");
}

TEST(Unicode, KnowsItsCategories) {
  EXPECT_TRUE(unicode::is_white_space(0x85));
  EXPECT_FALSE(unicode::is_white_space(0x200B));
  EXPECT_TRUE(unicode::is_mark(0x301));
  EXPECT_TRUE(unicode::is_number(0xBD));
  EXPECT_TRUE(unicode::is_punctuation(0x3002));
  EXPECT_FALSE(unicode::is_punctuation('$'));
  EXPECT_TRUE(unicode::is_word(0x4E00));  // inside a range that the data names by its ends
  EXPECT_TRUE(unicode::is_word(0x9FFF));
  EXPECT_FALSE(unicode::is_word(0x2F));
  EXPECT_TRUE(unicode::is_word(0x200D));  // joins the parts of a family
  EXPECT_TRUE(unicode::is_word(0x24D0));  // "a" in a circle: alphabetic, but a symbol
  EXPECT_FALSE(unicode::is_word(0x24FF));
}

TEST(Utf8, TakesOnlyTheShortestFormOfScalarValues) {
  for (const char* good : {"a", "\u00E9", "\u20AC", "\U0001F600", "\U0010FFFF", "\uD7FF"})
    EXPECT_EQ(utf8::first_invalid(good), std::string_view::npos);
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80",
                          "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5", "\xE2\x82", "\xFF"})
    EXPECT_EQ(utf8::first_invalid(std::string("12345678") + bad), 8u);
}

TEST(Utf8, MendsEachLongestBrokenStartByOneReplacement) {
  EXPECT_EQ(mended("a\xE2\x82z"), "a\uFFFDz");
  EXPECT_EQ(mended("\xE2\x82"), "\uFFFD");
  EXPECT_EQ(mended("\xF0\x80\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(mended("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(mended("\xF0\x9F\x98\xE2\x82\xAC"), "\uFFFD\u20AC");
}

TEST(Utf8, LeavesACutSequenceForLater) {
  size_t taken = 0;
  EXPECT_EQ(mended("ab\xF0\x9F\x98", &taken), "ab");
  EXPECT_EQ(taken, 2u);
  EXPECT_EQ(mended("ab\xF0\x80", &taken), "ab\uFFFD\uFFFD");
  EXPECT_EQ(taken, 4u);
}

}  // namespace
}  // namespace lethe
