#include "runtime/base/limits.hpp"
#include "tests/unit/grammar_match.hpp"

namespace lethe {
namespace {

TEST(Schema, TypesAndWhiteSpace) {
  EXPECT_TRUE(schema_takes(R"({"type":"object","properties":{"a":{"type":"integer"}}})",
                           "{ \"a\" :\n  7 }"));
  EXPECT_FALSE(
      schema_takes(R"({"type":"object","properties":{"a":{"type":"integer"}}})", "{  \"a\":7}"));
  EXPECT_TRUE(schema_takes(R"({"type":["integer","null"]})", "null"));
  EXPECT_FALSE(schema_takes(R"({"type":["integer","null"]})", "\"\""));
  for (auto good : {"0", "-1", "10.5", "1e9", "-0.1E-7"})
    EXPECT_TRUE(schema_takes(R"({"type":"number"})", good)) << good;
  for (auto bad : {"01", "1.", ".5", "+1", "1e", "--1"})
    EXPECT_FALSE(schema_takes(R"({"type":"number"})", bad)) << bad;
  EXPECT_TRUE(schema_takes("true", R"([{"a":[1,"x",null,true]}, {}])"));
}

TEST(Schema, TextsHaveValidEscapes) {
  for (auto good : {R"("")", R"("a\"\\\/\b\f\n\r\té日")", R"("\u00e9\uD83D\ude00")"})
    EXPECT_TRUE(schema_takes(R"({"type":"string"})", good)) << good;
  for (auto bad : {R"("\x")", R"("\ud83d")", R"("\ude00")", "\"\n\"", "\"\xFF\"", R"("\u12")"})
    EXPECT_FALSE(schema_takes(R"({"type":"string"})", bad)) << bad;
  constexpr auto two = R"({"type":"string","minLength":2,"maxLength":3})";
  EXPECT_FALSE(schema_takes(two, R"("a")"));
  EXPECT_TRUE(schema_takes(two, R"("日\n")"));
  EXPECT_TRUE(schema_takes(two, R"("\ud83d\ude00ab")"));
  EXPECT_FALSE(schema_takes(two, R"("abcd")"));
}

TEST(Schema, RequiredAndOptionalProperties) {
  constexpr auto s =
      R"({"type":"object","properties":{"a":true,"b":{"type":"null"},"c":true,"d":true},
                         "required":["b","d"]})";
  for (auto good :
       {R"({"b":null,"d":1})", R"({"a":1,"b":null,"d":1})", R"({"a":1,"b":null,"c":[],"d":{}})"})
    EXPECT_TRUE(schema_takes(s, good)) << good;
  for (auto bad :
       {"{}", R"({"b":null})", R"({"d":1})", R"({,"b":null,"d":1})", R"({"b":null,"d":1,})",
        R"({"b":null,"d":1,"x":1})", R"({"b":null,"a":1,"d":1})"})
    EXPECT_FALSE(schema_takes(s, bad)) << bad;
  constexpr auto optional = R"({"properties":{"a":true,"b":true}})";
  for (auto good : {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"})
    EXPECT_TRUE(schema_takes(optional, good)) << good;
}

TEST(Schema, AdditionalPropertiesNeverRepeatADeclaredName) {
  constexpr auto s = R"({"properties":{"name":true,"nam":true,"é":true},
                         "additionalProperties":{"type":"integer"}})";
  for (auto good :
       {R"({"x":1})", R"({"name":"a","nameX":2,"na":3})", R"({"è":1,"nX\n":2})", R"({"":1})"})
    EXPECT_TRUE(schema_takes(s, good)) << good;
  for (auto bad : {R"({"x":1,"name":2})", R"({"x":"s"})", R"({"nam":1,"nam":1})",
                   R"({"é":1,"é":1})", R"({"x":1,"\u006eame":1})"})
    EXPECT_FALSE(schema_takes(s, bad)) << bad;
  EXPECT_TRUE(
      schema_takes(R"({"type":"object","minProperties":1,"maxProperties":2})", R"({"a":1,"b":2})"));
  EXPECT_FALSE(schema_takes(R"({"type":"object","minProperties":1})", "{}"));
  EXPECT_FALSE(schema_takes(R"({"type":"object","maxProperties":1})", R"({"a":1,"b":2})"));
  EXPECT_FALSE(schema_takes(R"({"type":"object","additionalProperties":false})", R"({"a":1})"));
  EXPECT_TRUE(schema_takes(R"({"type":"object","required":["k"]})", R"({"k":1,"z":2})"));
  EXPECT_FALSE(schema_takes(R"({"type":"object","required":["k"]})", R"({"z":2})"));
}

TEST(Schema, Lists) {
  constexpr auto s = R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})";
  EXPECT_FALSE(schema_takes(s, "[]"));
  EXPECT_TRUE(schema_takes(s, "[1, 2,3]"));
  EXPECT_FALSE(schema_takes(s, "[1,2,3,4]"));
  constexpr auto tuple = R"({"prefixItems":[{"type":"null"},{"type":"boolean"}],"minItems":1})";
  EXPECT_TRUE(schema_takes(tuple, "[null]"));
  EXPECT_TRUE(schema_takes(tuple, "[null,true]"));
  EXPECT_FALSE(schema_takes(tuple, "[]"));
  EXPECT_FALSE(schema_takes(tuple, "[null,true,1]"));
  constexpr auto more =
      R"({"prefixItems":[{"type":"null"}],"items":{"type":"integer"},"minItems":3,"maxItems":4})";
  EXPECT_FALSE(schema_takes(more, "[null,1]"));
  EXPECT_TRUE(schema_takes(more, "[null,1,2]"));
  EXPECT_TRUE(schema_takes(more, "[null,1,2,3]"));
  EXPECT_FALSE(schema_takes(more, "[null,1,2,3,4]"));
  EXPECT_TRUE(schema_takes(R"({"type":"array","maxItems":0})", "[]"));
}

TEST(Schema, ValuesThatAreListed) {
  EXPECT_TRUE(schema_takes(R"({"enum":["a\nb",1,null,{"k":[ 1 , 2 ]}]})", R"("a\nb")"));
  EXPECT_TRUE(schema_takes(R"({"enum":["a",1,null,{"k":[ 1 , 2 ]}]})", R"({"k":[1,2]})"));
  EXPECT_TRUE(schema_takes(R"({"enum":["ab","a","abc"]})", R"("ab")"));
  EXPECT_FALSE(schema_takes(R"({"type":"string","enum":["a",1]})", "1"));
  EXPECT_TRUE(schema_takes(R"({"const":"x","enum":["x"],"type":"string"})", R"("x")"));
  std::string many = R"({"enum":[)";
  for (int i = 0; i < 5000; ++i) many += (i ? ",\"value " : "\"value ") + std::to_string(i) + "\"";
  EXPECT_TRUE(schema_takes(many + "]}", R"("value 4711")"));
}

TEST(Schema, IntegersBetween) {
  for (auto [low, high] : std::vector<std::pair<int, int>>{
           {0, 0}, {1, 9}, {5, 123}, {-17, 4}, {-120, -13}, {99, 101}, {-1, 1000}, {200, 200}}) {
    auto s = R"({"type":"integer","minimum":)" + std::to_string(low) + R"(,"maximum":)" +
             std::to_string(high) + "}";
    for (int v = -1100; v <= 1100; ++v)
      ASSERT_EQ(schema_takes(s, std::to_string(v)), low <= v && v <= high) << s << " " << v;
  }
  constexpr auto wide =
      R"({"type":"integer","minimum":-9223372036854775808,"exclusiveMaximum":9223372036854775807})";
  EXPECT_TRUE(schema_takes(wide, "-9223372036854775808"));
  EXPECT_FALSE(schema_takes(wide, "-9223372036854775809"));
  EXPECT_TRUE(schema_takes(wide, "9223372036854775806"));
  EXPECT_FALSE(schema_takes(wide, "9223372036854775807"));
  EXPECT_FALSE(schema_takes(R"({"type":"integer","minimum":250})", "99"));
  EXPECT_TRUE(schema_takes(R"({"type":"integer","minimum":250})", "100000000000000000"));
  EXPECT_TRUE(schema_takes(R"({"type":"integer","exclusiveMinimum":1.5})", "2"));
}

TEST(Schema, ReferencesAlsoRecursiveOnes) {
  constexpr auto tree = R"({"$ref":"#/$defs/n~1ode","$defs":{"n/ode":{"type":"object","properties":{
      "v":{"type":"integer"},
      "kids":{"type":"array","items":{"$ref":"#/$defs/n~1ode"}}},"required":["v"]}}})";
  EXPECT_TRUE(schema_takes(tree, R"({"v":1,"kids":[{"v":2},{"v":3,"kids":[]}]})"));
  EXPECT_FALSE(schema_takes(tree, R"({"kids":[]})"));
  EXPECT_TRUE(schema_takes(R"({"properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}})",
                           R"({"next":{"next":null}})"));
}

TEST(Schema, AllOfJoinsObjects) {
  constexpr auto s =
      R"({"allOf":[{"$ref":"#/$defs/a"},{"properties":{"y":{"type":"null"}},"required":["y"]}],
      "$defs":{"a":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}})";
  EXPECT_TRUE(schema_takes(s, R"({"x":1,"y":null})"));
  EXPECT_FALSE(schema_takes(s, R"({"x":1})"));
  EXPECT_TRUE(schema_takes(R"({"allOf":[{"type":"string"}],"title":"t"})", "\"s\""));
}

TEST(Schema, Formats) {
  struct sample {
    const char *format, *text;
    bool good;
  };
  for (auto s : {sample{"date", "2024-02-29", true},
                 {"date", "2023-02-29", false},
                 {"date", "1900-02-29", false},
                 {"date", "2000-02-29", true},
                 {"date", "2024-04-31", false},
                 {"time", "23:59:59.5Z", true},
                 {"time", "24:00:00Z", false},
                 {"date-time", "2024-01-31T00:00:00+02:00", true},
                 {"date-time", "2024-01-31", false},
                 {"uuid", "123e4567-e89b-12d3-a456-426614174000", true},
                 {"uuid", "123e4567", false},
                 {"ipv4", "255.0.10.199", true},
                 {"ipv4", "256.0.0.1", false},
                 {"ipv6", "2001:db8::ff00:42:8329", true},
                 {"ipv6", "::", true},
                 {"ipv6", "::1", true},
                 {"ipv6", "1:2:3:4:5:6:7:8", true},
                 {"ipv6", "1:2:3:4:5:6:7::8", false},
                 {"ipv6", "1::2::3", false},
                 {"email", "a.b+c@example.org", true},
                 {"email", "a@b", false},
                 {"hostname", "a-b.example", true},
                 {"hostname", "-a.example", false},
                 {"duration", "P1Y2M3DT4H5M6S", true},
                 {"duration", "P", false},
                 {"duration", "PT", false},
                 {"duration", "P3W", true}}) {
    auto schema = std::string(R"({"type":"string","format":")") + s.format + "\"}";
    EXPECT_EQ(schema_takes(schema, std::string("\"") + s.text + "\""), s.good)
        << s.format << " " << s.text;
  }
}

TEST(Schema, RefusalsNameThePlaceAndTheKeyword) {
  struct fault {
    const char *schema, *where, *what;
  };
  for (auto f : {fault{R"({"properties":{"x":{"type":"array","uniqueItems":true}}})",
                       "#/properties/x", "uniqueItems"},
                 {R"({"items":{"not":{}}})", "#/items", "`not`"},
                 {R"({"anyOf":[{},{"patternProperties":{}}]})", "#/anyOf/1", "patternProperties"},
                 {R"({"$ref":"#/$defs/x"})", "#", "leads nowhere"},
                 {R"({"$ref":"http://x/y"})", "#", "inside the schema"},
                 {R"({"$ref":"#","type":"object"})", "#", "`type`"},
                 {R"({"type":"number","maximum":5})", "#", "maximum"},
                 {R"({"type":"integer","multipleOf":5})", "#", "multipleOf"},
                 {R"({"type":"string","format":"uri"})", "#/format", "supported are"},
                 {R"~({"type":"string","pattern":"a(?=b)"})~", "#/pattern", "look-around"},
                 {R"({"type":"string","pattern":"a","maxLength":3})", "#", "only one"},
                 {R"({"type":"string","maxLength":10001})", "#", "maxLength"},
                 {R"({"type":"strnig"})", "#", "`type`"},
                 {R"({"required":["a"],"additionalProperties":false})", "#/required", "properties"},
                 {R"({"anyOf":[],"x":1})", "#", "`x`"},
                 {R"({"enum":[]})", "#/enum", "list"},
                 {R"({"anyOf":[{}],"type":"object"})", "#", "`type`"},
                 {"[]", "#", "object"}}) {
    auto why = schema_refusal(f.schema);
    EXPECT_NE(why.find(std::string("schema ") + f.where), std::string::npos) << f.schema << why;
    EXPECT_NE(why.find(f.what), std::string::npos) << f.schema << ": " << why;
  }
  EXPECT_NE(schema_refusal("{"), "");
}

TEST(Schema, RefusesWhatNothingFits) {
  for (auto s :
       {"false", R"({"$ref":"#"})", R"({"properties":{"a":{"$ref":"#"}},"required":["a"]})",
        R"({"type":"integer","minimum":3,"maximum":2})", R"({"type":"string","enum":[1]})",
        R"({"anyOf":[{"$ref":"#"},{"$ref":"#"}]})", R"({"minItems":3,"maxItems":2})"})
    EXPECT_NE(schema_refusal(s), "") << s;
}

TEST(Schema, ExponentialOnesAreRefusedSoon) {
  std::string doubling = R"({"$defs":{"d0":{"type":"object"})";
  for (int i = 1; i < 60; ++i) {
    auto below = R"({"$ref":"#/$defs/d)" + std::to_string(i - 1) + "\"}";
    doubling += ",\"d" + std::to_string(i) + "\":{\"allOf\":[" + below + "," + below + "]}";
  }
  EXPECT_NE(schema_refusal(doubling + R"(},"allOf":[{"$ref":"#/$defs/d59"},{"type":"object"}]})"),
            "");
  std::string references = R"({"$defs":{"x":{"type":"null"}},"anyOf":[)";
  while (references.size() < limits::grammar_bytes_max - 200)
    references += R"({"$ref":"#/$defs/x"},)";
  EXPECT_NE(schema_refusal(references + "{}]}").find("steps"), std::string::npos);
}

TEST(Schema, TextOfTheLargestSize) {
  auto padded = [](size_t bytes) {
    std::string s = R"({"type":"null","title":")";
    return s + std::string(bytes - s.size() - 2, 'x') + "\"}";
  };
  EXPECT_EQ(schema_refusal(padded(limits::grammar_bytes_max - 1)), "");
  EXPECT_EQ(schema_refusal(padded(limits::grammar_bytes_max)), "");
  EXPECT_NE(schema_refusal(padded(limits::grammar_bytes_max + 1)), "");
}

}  // namespace
}  // namespace lethe
