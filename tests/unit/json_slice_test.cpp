// JSON that a stranger sent, looked at where it lies.
#include "runtime/json/json_slice.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <random>

namespace lethe {
namespace {

std::string text_of(std::string_view json) {
  auto checked = check_json(json);
  if (!checked) return "(refused)";
  auto text = checked->text(std::pmr::get_default_resource());
  return text ? std::string(*text) : "(no text)";
}

bool takes(std::string_view json) { return bool(check_json(json)); }

TEST(JsonSlice, LooksIntoContainersWithoutCopies) {
  std::string body = R"( {"a" : [1, {"b":"x"} ,[]], "c":{"d":null} , "e":true} )";
  auto root = check_json(body);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->count(), 3u);
  EXPECT_EQ(root->find("a")->count(), 3u);
  EXPECT_EQ(root->find("a")->raw(), R"([1, {"b":"x"} ,[]])");
  EXPECT_TRUE(root->find("c")->find("d")->is(json_kind::null));
  EXPECT_EQ(root->find("e")->boolean(), true);
  EXPECT_FALSE(root->find("f"));
  EXPECT_GE(root->find("a")->raw().data(), body.data());
  EXPECT_LT(root->find("a")->raw().data(), body.data() + body.size());
}

TEST(JsonSlice, TheLastOfEqualKeysCounts) {
  EXPECT_EQ(check_json(R"({"a":1,"a":2})")->find("a")->whole(), 2);
  EXPECT_EQ(check_json(R"({"\u0061":3})")->find("a")->whole(), 3);
}

TEST(JsonSlice, ResolvesEscapes) {
  EXPECT_EQ(text_of(R"("a\"\\\/\b\f\n\r\tz")"), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(text_of(R"("\u00e9\u20AC\ud83c\udf0a")"), "\u00e9\u20ac\U0001f30a");
  EXPECT_EQ(text_of("\"\u00e9\U0001f30a\""), "\u00e9\U0001f30a");
}

TEST(JsonSlice, NumbersKeepTheirKind) {
  EXPECT_EQ(check_json("-12")->whole(), -12);
  EXPECT_EQ(check_json("9223372036854775807")->whole(), INT64_MAX);
  EXPECT_EQ(check_json("9223372036854775808")->whole(), std::nullopt);
  EXPECT_EQ(check_json("1.0")->whole(), std::nullopt);
  EXPECT_EQ(check_json("1.5e1")->number(), 15.0);
  EXPECT_EQ(check_json("1e999")->number(), std::nullopt);
  EXPECT_EQ(check_json("true")->number(), std::nullopt);
}

TEST(JsonSlice, RefusesWhatIsNone) {
  for (const char* bad : {"",
                          " ",
                          "{",
                          "[1,]",
                          "{\"a\"}",
                          "{\"a\":}",
                          "{a:1}",
                          "01",
                          "1.",
                          ".5",
                          "+1",
                          "1e",
                          "nul",
                          "tru",
                          "\"a",
                          "\"\\x\"",
                          "\"\\u12\"",
                          "\"\\ud800\"",
                          "\"\\udc00\"",
                          "\"\\ud800\\u0041\"",
                          "[1 2]",
                          "{} {}",
                          "\"\t\"",
                          "[1}",
                          "NaN",
                          "'a'",
                          "\"\xff\"",
                          "\"\xc0\x80\"",
                          "\"\xed\xa0\x80\"",
                          "\"\xf5\x80\x80\x80\"",
                          "\"\xe2\x82\""})
    EXPECT_FALSE(takes(bad)) << bad;
  EXPECT_NE(check_json("[1,2,x]").why().text.find("byte 5"), std::string::npos);
}

TEST(JsonSlice, DepthHasABound) {
  auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_TRUE(takes(nested(json_depth_max + 1)));
  EXPECT_FALSE(takes(nested(json_depth_max + 2)));
  EXPECT_FALSE(takes(std::string(1'000'000, '[')));
}

/// Random edits of a valid text: what we take, another reader takes, and the other way round.
TEST(JsonSlice, AgreesWithAnotherReaderOnDamagedTexts) {
  const std::string whole = R"({"m":[{"role":"user","content":"h\u00e9\n\"\ud83c\udf0a"}],)"
                            R"("n":-1.5e+3,"t":true,"x":[null,{}]})";
  std::mt19937 random(7);
  simdjson::dom::parser parser;
  size_t taken = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = whole;
    for (uint32_t edits = random() % 3; edits > 0; --edits) {
      size_t at = random() % text.size();
      if (random() % 2)
        text[at] = "{}[]\",:\\u0e1-+. tn\x01\xc3\x80"[random() % 22];
      else
        text.erase(at, 1 + random() % 3);
    }
    simdjson::dom::element root;
    bool theirs = !parser.parse(text).get(root);
    // Theirs also refuses numbers that no double or 64-bit integer holds; edits here make none.
    ASSERT_EQ(takes(text), theirs) << text;
    taken += theirs;
  }
  EXPECT_GT(taken, 5000u);
  EXPECT_LT(taken, 19000u);
}

}  // namespace
}  // namespace lethe
