#include "tests/unit/grammar_match.hpp"

namespace lethe {
namespace {

TEST(Pattern, MatchesTheWhole) {
  EXPECT_TRUE(pattern_takes("[a-c]{2}\\d+(?:x|yz)?", "ab12yz"));
  EXPECT_FALSE(pattern_takes("[a-c]{2}\\d+(?:x|yz)?", "ab12y"));
  EXPECT_TRUE(pattern_takes("^a|b$", "b"));
  EXPECT_FALSE(pattern_takes("^a|b$", "ab"));
  EXPECT_TRUE(pattern_takes("a{,2}", "a{,2}")) << "a brace that repeats nothing is itself";
  EXPECT_TRUE(pattern_takes("\\w\\s\\W\\D\\S.", "a -x!é"));
  EXPECT_FALSE(pattern_takes(".", "\n"));
  EXPECT_TRUE(pattern_takes("a+?b*?c??", "aab"));
  EXPECT_TRUE(pattern_takes("[\\d\\-x-z]+", "3-y"));
  EXPECT_TRUE(pattern_takes("\\x41\\u00e9\\.\\/", "Aé./"));
}

TEST(Pattern, RefusesWhatItCannotDo) {
  for (auto p : {"(?=a)b", "(?<n>a)", "\\bword", "(a)\\1", "a(b", "a)b", "[a", "[z-a]", "*a",
                 "a{3,2}", "\\p{L}", "x^y", "a$b", "\\", "(?i)a", "a{10001}", "\\ud800"})
    EXPECT_FALSE(matched(pattern_grammar, p).good()) << p;
}

TEST(Pattern, InASchemaIsSearchedForAndEscaped) {
  auto schema = [](std::string p) { return R"({"type":"string","pattern":")" + p + "\"}"; };
  EXPECT_TRUE(schema_takes(schema("^ab+$"), "\"abb\""));
  EXPECT_FALSE(schema_takes(schema("^ab+$"), "\"xabb\""));
  EXPECT_TRUE(schema_takes(schema("b\\\\d"), "\"aab7c\""));
  EXPECT_FALSE(schema_takes(schema("b\\\\d"), "\"aabc\""));
  EXPECT_TRUE(schema_takes(schema("^[^a]$"), R"("\"")"));
  EXPECT_TRUE(schema_takes(schema("^[^a]$"), R"("\n")"));
  EXPECT_TRUE(schema_takes(schema("^[^a]$"), R"("\u0001")"));
  EXPECT_FALSE(schema_takes(schema("^.$"), R"("\n")"));
}

}  // namespace
}  // namespace lethe
