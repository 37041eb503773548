#include "runtime/base/limits.hpp"
#include "tests/unit/grammar_match.hpp"

namespace lethe {
namespace {

TEST(Gbnf, TakesLiteralsAlternativesGroupsAndRepetitions) {
  constexpr auto g = "root ::= (\"a\" | \"bc\")+ \"!\"? [0-9]{2,3} x*\nx ::= \"x\"  # a comment";
  for (auto good : {"a12", "bca!123", "aaa99xxx"}) EXPECT_TRUE(gbnf_takes(g, good)) << good;
  for (auto bad : {"", "12", "a1", "a1234", "b12", "a!!12", "a12y"})
    EXPECT_FALSE(gbnf_takes(g, bad)) << bad;
}

TEST(Gbnf, CountsExactly) {
  EXPECT_FALSE(gbnf_takes("root ::= \"ab\"{3}", "abab"));
  EXPECT_TRUE(gbnf_takes("root ::= \"ab\"{3}", "ababab"));
  EXPECT_FALSE(gbnf_takes("root ::= \"ab\"{3}", "abababab"));
  EXPECT_FALSE(gbnf_takes("root ::= [a-z]{2,}", "a"));
  EXPECT_TRUE(gbnf_takes("root ::= [a-z]{2,}", "abcdefgh"));
  EXPECT_TRUE(gbnf_takes("root ::= \"a\"{0,0}", ""));
  EXPECT_FALSE(gbnf_takes("root ::= \"a\"{0}", "a"));
}

TEST(Gbnf, ClassesAreCharactersNotBytes) {
  EXPECT_TRUE(gbnf_takes("root ::= [^a-z]", "é"));
  EXPECT_TRUE(gbnf_takes("root ::= [à-ÿ]+", "éà"));
  EXPECT_FALSE(gbnf_takes("root ::= [^é]", "é"));
  EXPECT_FALSE(gbnf_takes("root ::= .", "\xC3"));
  EXPECT_FALSE(gbnf_takes("root ::= .", "\xED\xA0\x80"));  // a surrogate
  EXPECT_FALSE(gbnf_takes("root ::= .", "\xC0\x80"));      // longer than it need be
  EXPECT_TRUE(gbnf_takes("root ::= .{3}", "a日\xF0\x9F\x98\x80"));
  EXPECT_TRUE(gbnf_takes("root ::= [\\x41-\\u0043\\]\\-]{4}", "AC]-"));
  EXPECT_TRUE(gbnf_takes("root ::= [a-]+", "a-"));
}

TEST(Gbnf, EscapesInLiterals) {
  EXPECT_TRUE(gbnf_takes(R"(root ::= "\n\t\"\\\x41\u00e9\U0001F600")",
                         "\n\t\"\\A\xC3\xA9\xF0\x9F\x98\x80"));
}

TEST(Gbnf, RulesGoOverLinesAndRecur) {
  constexpr auto g =
      "root ::= list\nlist ::= \"[\" (\n  list (\",\" list)*\n)? \"]\"\n  | item\nitem ::= [a-z]";
  EXPECT_TRUE(gbnf_takes(g, "[a,[b,[],c],[[]]]"));
  EXPECT_FALSE(gbnf_takes(g, "[a,]"));
  EXPECT_FALSE(gbnf_takes(g, "[[]"));
  EXPECT_TRUE(gbnf_takes("root ::= \"a\" root | \"a\"", std::string(5000, 'a')))
      << "recursion at the end takes no depth";
}

TEST(Gbnf, ErrorsSayWhereAndWhat) {
  struct fault {
    const char *grammar, *where, *what;
  };
  for (auto f :
       {fault{"root := \"a\"", "1:6", "::="}, fault{"root ::= \"a", "1:10", "not closed"},
        fault{"root ::= \"a\"\nx ::= [z-a]", "2:8", "upside down"},
        fault{"root ::= x", "1:10", "`x` is not defined"},
        fault{"root ::= (\"a\"", "1:10", "not closed"},
        fault{"root ::= \"a\")", "1:13", "closes nothing"},
        fault{"root ::= \"\\q\"", "1:11", "unknown escape"},
        fault{"root ::= \"\\x4\"", "1:11", "hexadecimal"},
        fault{"root ::= \"a\"{3,2}", "1:13", "upside down"},
        fault{"root ::= \"a\"{x}", "1:13", "a repetition is"},
        fault{"root ::= \"a\"\nroot ::= \"b\"", "2:1", "twice"},
        fault{"root ::= *", "1:10", "here should be"}, fault{"root ::= [a", "1:10", "not closed"},
        fault{"root ::= \"\\uD800\"", "1:11", "no character"},
        fault{"root ::= \"\xFF\"", "1:11", "UTF-8"}}) {
    auto why = gbnf_refusal(f.grammar);
    EXPECT_NE(why.find(f.where), std::string::npos) << f.grammar << ": " << why;
    EXPECT_NE(why.find(f.what), std::string::npos) << f.grammar << ": " << why;
  }
  EXPECT_NE(gbnf_refusal("a ::= \"a\"").find("`root`"), std::string::npos);
  EXPECT_NE(gbnf_refusal("").find("`root`"), std::string::npos);
}

TEST(Gbnf, RefusesLeftRecursionHoweverItHides) {
  for (auto g : {"root ::= root \"a\" | \"b\"", "root ::= x \"a\" | \"b\"\nx ::= root",
                 "root ::= e root \"a\" | \"b\"\ne ::= \"e\"?", "root ::= (\"a\" | root)* \"b\""})
    EXPECT_NE(gbnf_refusal(g).find("calls itself"), std::string::npos) << g;
  EXPECT_TRUE(gbnf_takes("root ::= \"a\" root \"b\" | \"c\"", "aacbb"));
}

TEST(Gbnf, RefusesWhatNeverEnds) {
  EXPECT_NE(gbnf_refusal("root ::= \"a\" root").find("can never end"), std::string::npos);
  EXPECT_NE(gbnf_refusal("root ::= [^\\x00-\\U0010FFFF]").find("can never end"), std::string::npos);
  EXPECT_TRUE(gbnf_takes("root ::= x | \"b\"\nx ::= \"a\" x", "b"));
  EXPECT_FALSE(gbnf_takes("root ::= x | \"b\"\nx ::= \"a\" x", "a"));
}

TEST(Gbnf, EmptyLoopsAreHarmless) {
  EXPECT_TRUE(gbnf_takes("root ::= (\"a\"* | \"b\"?)* \"c\"", "aabac"));
  EXPECT_TRUE(gbnf_takes("root ::= \"\" \"a\" (\"\")*", "a"));
}

std::string nested(uint32_t depth) {
  return "root ::= " + std::string(depth, '(') + "\"a\"" + std::string(depth, ')');
}
std::string with_rules(uint32_t rules) {
  std::string g = "root ::= \"a\"\n";
  for (uint32_t i = 1; i < rules; ++i) g += "r" + std::to_string(i) + " ::= \"a\"\n";
  return g;
}
std::string of_bytes(size_t bytes) {
  std::string g = "root ::= \"a\" #";
  return g + std::string(bytes - g.size(), '.');
}
std::string repeated(uint32_t times) { return "root ::= \"a\"{" + std::to_string(times) + "}"; }

TEST(GbnfLimits, HoldAtAndBelowAndRefuseAbove) {
  EXPECT_EQ(gbnf_refusal(nested(limits::grammar_nesting_max - 1)), "");
  EXPECT_EQ(gbnf_refusal(nested(limits::grammar_nesting_max)), "");
  EXPECT_NE(gbnf_refusal(nested(limits::grammar_nesting_max + 1)), "");
  EXPECT_EQ(gbnf_refusal(with_rules(limits::grammar_rules_max - 1)), "");
  EXPECT_EQ(gbnf_refusal(with_rules(limits::grammar_rules_max)), "");
  EXPECT_NE(gbnf_refusal(with_rules(limits::grammar_rules_max + 1)), "");
  EXPECT_EQ(gbnf_refusal(of_bytes(limits::grammar_bytes_max - 1)), "");
  EXPECT_EQ(gbnf_refusal(of_bytes(limits::grammar_bytes_max)), "");
  EXPECT_NE(gbnf_refusal(of_bytes(limits::grammar_bytes_max + 1)), "");
  EXPECT_EQ(gbnf_refusal(repeated(limits::grammar_repeat_max - 1)), "");
  EXPECT_EQ(gbnf_refusal(repeated(limits::grammar_repeat_max)), "");
  EXPECT_NE(gbnf_refusal(repeated(limits::grammar_repeat_max + 1)), "");
}

TEST(GbnfLimits, NodesAreCountedExactly) {
  // Two nodes of the grammar's own (the dead one and the end), one for each byte.
  auto repeats = [](size_t nodes) {
    std::string g = "root ::=";
    for (nodes -= 2; nodes > 0;) {
      size_t n = std::min<size_t>(nodes, limits::grammar_repeat_max);
      g += " \"a\"{" + std::to_string(n) + "}";
      nodes -= n;
    }
    return g;
  };
  EXPECT_EQ(gbnf_refusal(repeats(limits::grammar_nodes_max - 1)), "");
  EXPECT_EQ(gbnf_refusal(repeats(limits::grammar_nodes_max)), "");
  EXPECT_NE(gbnf_refusal(repeats(limits::grammar_nodes_max + 1)).find("nodes"), std::string::npos);
}

TEST(GbnfLimits, RepetitionsOfRepetitionsStaySmall) {
  EXPECT_EQ(gbnf_refusal("root ::= (((\"a\" | \"b\"){1000}){1000}){1000}"), "");
}

TEST(GbnfLimits, DepthIsBoundedAndNeverADeadEnd) {
  matched m(parse_gbnf, "root ::= \"(\" root \")\" | \"x\"");
  ASSERT_TRUE(m.good()) << m.why();
  size_t depth = 0;
  while (m.run().accept(0, "(")) ++depth;
  EXPECT_EQ(depth, limits::grammar_depth_max);
  EXPECT_TRUE(m.takes("x" + std::string(depth, ')')));
}

TEST(GbnfLimits, SoManyWaysAreOpenAndNoMore) {
  // Each alternative waits for its own byte behind a common one: as many ways as alternatives.
  auto ways = [](uint32_t n) {
    std::string g = "root ::= \"a\" (\"x\"";
    for (uint32_t i = 1; i < n; ++i) g += " | \"x\"";
    return g + ")";
  };
  EXPECT_TRUE(gbnf_takes(ways(limits::grammar_stacks_max - 1), "ax"));
  EXPECT_TRUE(gbnf_takes(ways(limits::grammar_stacks_max), "ax"));
  EXPECT_FALSE(gbnf_takes(ways(limits::grammar_stacks_max + 1), "a"));
}

}  // namespace
}  // namespace lethe
