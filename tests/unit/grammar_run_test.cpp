#include "runtime/base/limits.hpp"
#include "tests/unit/grammar_match.hpp"

namespace lethe {
namespace {

/// Masks along a random answer are what every token's bytes say.
void walk_and_check(matched& m, uint32_t seed, uint32_t tokens, uint32_t choice = 0) {
  std::mt19937 random(seed);
  for (uint32_t i = 0; i < tokens && !m.run().must_end(choice); ++i) {
    ASSERT_TRUE(m.mask_is_right(choice)) << "seed " << seed << ", token " << i;
    auto ids = m.allowed(choice);
    ASSERT_FALSE(ids.empty() && !m.run().may_end(choice)) << "a dead end, seed " << seed;
    if (ids.empty()) return;
    ASSERT_TRUE(m.run().accept_token(choice, ids[random() % ids.size()]));
  }
}

TEST(GrammarRun, MasksAreTheDefinition) {
  for (auto s :
       {R"({})", R"({"type":"string","maxLength":5})", R"({"type":"string","minLength":30})",
        R"({"type":"string","minLength":3,"maxLength":40})",
        R"({"anyOf":[{"type":"string","maxLength":3},{"type":"string","pattern":"^[^b]*$"}]})",
        R"({"anyOf":[{"type":"string","maxLength":2},{"enum":["the name","ab"]}]})",
        R"({"type":"object","properties":{"name":{"type":"string","pattern":"a.{2,9}"}}})",
        R"({"type":"object","properties":{"name":true},"additionalProperties":true})"})
    for (uint32_t seed = 0; seed < 12; ++seed) {
      matched m(schema_grammar, s);
      ASSERT_TRUE(m.good()) << m.why();
      walk_and_check(m, seed, 40);
    }
  for (auto g :
       {"root ::= [^\"]*", "root ::= .{0,6} \"x\"", "root ::= ([^\\\\\"] | \"ab\")* \"\\\"\"",
        "root ::= a*\na ::= \"[\" a* \"]\" | [^\\[\\]]"})
    for (uint32_t seed = 0; seed < 12; ++seed) {
      matched m(parse_gbnf, g);
      ASSERT_TRUE(m.good()) << m.why();
      walk_and_check(m, seed, 40);
    }
}

TEST(GrammarRun, MasksAreTheDefinitionInsideOfEscapes) {
  matched m(schema_grammar, R"({"type":"string","maxLength":9})");
  for (char c : std::string("\"a\\uDabc\\udE00\\n")) {
    ASSERT_TRUE(m.mask_is_right()) << c;
    ASSERT_TRUE(m.run().accept(0, {&c, 1})) << c;
  }
}

TEST(GrammarRun, ControlTokensAndRowsBeyondTheVocabularyAreNeverAllowed) {
  std::pmr::monotonic_buffer_resource memory;
  auto made = parse_gbnf("root ::= .*", &memory);
  grammar_run run(*std::move(made), small_trie(), 1, small_trie().size() + 100, &memory);
  auto mask = run.allowed(0);
  EXPECT_EQ(mask.size(), (small_trie().size() + 100 + 63) / 64);
  EXPECT_EQ(mask[0] & 1, 0u);
  for (uint32_t id = small_trie().size(); id < small_trie().size() + 100; ++id)
    EXPECT_EQ(mask[id / 64] >> id % 64 & 1, 0u);
  EXPECT_FALSE(run.accept_token(0, 0));
  EXPECT_FALSE(run.accept_token(0, 1u << 20));
}

TEST(GrammarRun, AModelOfFewerRowsThanTokensIsSafe) {
  std::pmr::monotonic_buffer_resource memory;
  auto made = schema_grammar(std::string_view(R"({"type":"string"})"), &memory);
  grammar_run run(*std::move(made), small_trie(), 1, 70, &memory);
  EXPECT_TRUE(run.accept(0, "\""));
  auto mask = run.allowed(0);
  ASSERT_EQ(mask.size(), 2u);
  EXPECT_EQ(mask[1] >> 6, 0u);
}

TEST(GrammarRun, ChoicesGoTheirOwnWays) {
  matched m(parse_gbnf, "root ::= \"a\" \"b\"* | \"c\"", 3);
  EXPECT_TRUE(m.run().accept(0, "a"));
  EXPECT_TRUE(m.run().accept(1, "c"));
  EXPECT_TRUE(m.run().may_end(0));
  EXPECT_FALSE(m.run().must_end(0));
  EXPECT_TRUE(m.run().must_end(1));
  EXPECT_FALSE(m.run().may_end(2));
  EXPECT_FALSE(m.run().accept(1, "a"));
  EXPECT_TRUE(m.run().must_end(1)) << "what is refused changes nothing";
}

TEST(GrammarRun, FullTablesAreRenewedWithoutAnyoneNoticing) {
  // Every count is a state of its own: far more of them than a table holds.
  matched m(schema_grammar, R"({"type":"array","items":{"type":"string","maxLength":3000}})", 2);
  ASSERT_TRUE(m.good()) << m.why();
  ASSERT_TRUE(m.run().accept(0, "[\""));
  ASSERT_TRUE(m.run().accept(1, "[\"xyz"));
  for (int i = 0; i < 2990; ++i) ASSERT_TRUE(m.run().accept(0, "b")) << i;
  EXPECT_TRUE(m.mask_is_right(0));
  EXPECT_TRUE(m.mask_is_right(1));
  EXPECT_TRUE(m.run().accept(1, "\"]"));
  EXPECT_TRUE(m.run().must_end(1));
  EXPECT_TRUE(m.run().accept(0, "1234567890"));
  EXPECT_FALSE(m.run().accept(0, "x"));
  EXPECT_TRUE(m.run().accept(0, "\",\"\"]"));
  EXPECT_TRUE(m.run().must_end(0));
}

TEST(GrammarRun, AnAmbiguousGrammarOverManyTokensStaysWithinBounds) {
  // Ambiguous everywhere: each byte has hundreds of ways, which are others for each place.
  std::string g = "root ::= (";
  for (int i = 1; i <= 250; ++i)
    g += (i > 1 ? " | " : "") + std::string("[a-z]{") + std::to_string(i) + "," +
         std::to_string(i + 40) + "}";
  matched m(parse_gbnf, g + ") \"!\"");
  ASSERT_TRUE(m.good()) << m.why();
  std::vector<std::string> words;
  std::mt19937 random(1);
  for (int i = 0; i < 60000; ++i) {
    std::string w;
    for (int k = 0; k < 12; ++k) w += char('a' + random() % 26);
    words.push_back(w);
  }
  token_trie many(std::vector<std::string_view>(words.begin(), words.end()));
  matched big(parse_gbnf, g + ") \"!\"", 1, many);
  auto mask = big.run().allowed(0);
  EXPECT_FALSE(mask.empty()) << "states repeat, so that even this is within bounds";
}

TEST(GrammarRun, StateIsOneChoiceOfARun) {
  matched m(parse_gbnf, "root ::= \"a\"+", 2);
  grammar_state second(m.run(), 1);
  std::vector<uint64_t> mask(m.run().mask_words());
  EXPECT_TRUE(second.fill(mask));
  EXPECT_FALSE(second.may_end());
  EXPECT_TRUE(second.accept("aa"));
  EXPECT_TRUE(second.may_end());
  EXPECT_FALSE(second.must_end());
  EXPECT_FALSE(m.run().may_end(0));
}

TEST(TokenTrie, KnowsEveryTokenOnce) {
  const auto& t = small_trie();
  std::vector<uint32_t> seen(t.size(), 0);
  for (const auto* branch : {&t.plain(), &t.rest()})
    for (size_t i = 0; i < branch->nodes.size(); ++i)
      for (uint32_t id : branch->ids_at(i)) {
        ++seen[id];
        EXPECT_EQ(t.bytes(id).size(), branch->nodes[i].depth);
        EXPECT_EQ(uint8_t(t.bytes(id).back()), branch->nodes[i].byte);
      }
  for (uint32_t id = 0; id < t.size(); ++id) EXPECT_EQ(seen[id], t.bytes(id).empty() ? 0u : 1u);
}

TEST(TokenTrie, LeavesOutTokensBeyondTheLimit) {
  for (size_t bytes : {token_trie::token_bytes_max - 1, token_trie::token_bytes_max,
                       token_trie::token_bytes_max + 1}) {
    std::string word(bytes, 'x');
    std::string_view one[] = {word};
    token_trie t(one);
    EXPECT_EQ(t.rest().ids.size(), bytes <= token_trie::token_bytes_max ? 1u : 0u);
  }
}

}  // namespace
}  // namespace lethe
