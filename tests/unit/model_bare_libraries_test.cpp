#include <gtest/gtest.h>

#include "tests/gpu/bare/fmt/format.h"
#include "tests/gpu/bare/simdjson.h"

// What stands for fmt and simdjson where a GPU's machine has neither. Nothing else of ours is
// included here: it would bring the libraries.

namespace lethe::testing {
namespace {

namespace dom = simdjson::dom;

TEST(BareFormat, FillsHoles) {
  EXPECT_EQ(fmt::format("no hole"), "no hole");
  EXPECT_EQ(fmt::format("{}: {} of {}", "a", std::string("b"), std::string_view("c")), "a: b of c");
  EXPECT_EQ(fmt::format("{}{} {}|", uint8_t(200), -7, size_t{18446744073709551615u}),
            "200-7 18446744073709551615|");
  EXPECT_EQ(fmt::format("{} {} {} {}", true, 'x', 0.1, 1e-6), "true x 0.1 1e-06");
  EXPECT_EQ(fmt::format("-{:05}-of-{:05}.gguf", 12, 123456), "-00012-of-123456.gguf");
}

/// A document whose parser lives as long.
struct document {
  dom::parser parser;
  dom::object root;
  simdjson::error_code error;
  explicit document(std::string_view text, size_t depth = 16) {
    error = parser.allocate(text.size(), depth);
    if (!error) error = parser.parse(text.data(), text.size(), true).get(root);
  }
  template <class T>
  T as(std::string_view key) {
    T value{};
    EXPECT_EQ(root.at_key(key).get(value), simdjson::SUCCESS) << key;
    return value;
  }
};

TEST(BareJson, ReadsEveryKindOfValue) {
  document d(R"( {"n": null, "t":true,"f": false, "i":[0, 18446744073709551615], "m": -42,
    "r": 1.5e-3, "s": "q\"\\\/\b\f\n\r\t\u00e9\u20AC\ud83d\ude00é", "o": {"x":{}, "y":[]}} )");
  ASSERT_EQ(d.error, simdjson::SUCCESS) << simdjson::error_message(d.error);
  EXPECT_TRUE(d.as<dom::element>("n").is_null());
  EXPECT_TRUE(d.as<bool>("t") && d.as<dom::element>("t").is_bool());
  EXPECT_FALSE(d.as<bool>("f") || bool(d.as<dom::element>("f")));
  uint64_t large = 0;
  EXPECT_EQ(d.as<dom::array>("i").at(1).get(large), simdjson::SUCCESS);
  EXPECT_EQ(large, UINT64_MAX);
  EXPECT_EQ(d.as<int64_t>("m"), -42);
  EXPECT_EQ(d.as<double>("m"), -42);
  EXPECT_EQ(d.as<double>("r"), 1.5e-3);
  EXPECT_EQ(d.as<std::string_view>("s"), "q\"\\/\b\f\n\r\té€😀é");
  std::string keys;
  for (auto member : d.as<dom::object>("o")) keys += member.key;
  EXPECT_EQ(keys, "xy");
}

TEST(BareJson, GivesNoValueOfAnotherKind) {
  document d(R"({"i": 1, "m": -1, "big": 9223372036854775808, "s": "1", "twice": 1, "twice": 2})");
  ASSERT_EQ(d.error, simdjson::SUCCESS);
  uint64_t u = 0;
  int64_t i = 0;
  bool flag = false;
  dom::object object;
  EXPECT_TRUE(d.root.at_key("m").get(u));
  EXPECT_TRUE(d.root.at_key("big").get(i));
  EXPECT_TRUE(d.root.at_key("s").get(i));
  EXPECT_TRUE(d.root.at_key("i").get(flag));
  EXPECT_TRUE(d.root.at_key("i").get(object));
  EXPECT_TRUE(d.root.at_key("none").get(u));
  EXPECT_EQ(d.as<uint64_t>("twice"), 1u);
  EXPECT_EQ(d.root.size(), 6u);
}

TEST(BareJson, RefusesWhatIsNotJson) {
  for (const char* text : {"",
                           "{",
                           "[]",
                           "{\"a\":1",
                           "{\"a\":1,}",
                           "{\"a\" 1}",
                           "{a:1}",
                           "{\"a\":01}",
                           "{\"a\":1.}",
                           "{\"a\":.5}",
                           "{\"a\":1.e3}",
                           "{\"a\":+1}",
                           "{\"a\":1e}",
                           "{\"a\":nul}",
                           "{} {}",
                           "{\"a\":18446744073709551616}",
                           "{\"a\":\"\n\"}",
                           "{\"a\":\"\\x\"}",
                           "{\"a\":\"\\u12\"}",
                           "{\"a\":\"\\ud800\"}",
                           "{\"a\":\"\\ude00\"}",
                           "{\"a\":\"",
                           "{\"a\":[1 2]}",
                           "{\"a\":-}"})
    EXPECT_NE(document(text).error, simdjson::SUCCESS) << text;
}

TEST(BareJson, RefusesToNestDeeperThanAllowed) {
  EXPECT_EQ(document(R"({"a":[[1]]})", 3).error, simdjson::SUCCESS);
  EXPECT_EQ(document(R"({"a":[[[1]]]})", 3).error, simdjson::DEPTH_ERROR);
}

}  // namespace
}  // namespace lethe::testing
