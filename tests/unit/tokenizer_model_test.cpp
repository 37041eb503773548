#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/base/utf8.hpp"
#include "runtime/tokenizer/bpe.hpp"
#include "runtime/tokenizer/score_bpe.hpp"
#include "runtime/tokenizer/unigram.hpp"
#include "runtime/tokenizer/wordpiece.hpp"

namespace lethe {
namespace {

using ids = std::vector<uint32_t>;

vocabulary vocabulary_of(std::initializer_list<std::string_view> texts) {
  vocabulary v;
  for (auto text : texts) EXPECT_TRUE(v.add(v.size(), text));
  return v;
}

template <class Model>
ids encoded(const Model& model, std::string_view word) {
  typename Model::scratch scratch(std::pmr::get_default_resource());
  std::pmr::vector<uint32_t> out;
  model.encode(word, scratch, out);
  return {out.begin(), out.end()};
}

TEST(Vocabulary, FindsTextsAndRefusesTwoOnOneId) {
  auto v = vocabulary_of({"a", "b", "ab"});
  EXPECT_EQ(v.id_of("ab"), 2u);
  EXPECT_FALSE(v.id_of("abc"));
  EXPECT_FALSE(v.add(1, "c"));
  EXPECT_TRUE(v.add(1, "b"));
  EXPECT_FALSE(v.add(1u << 20, "x"));
  ASSERT_TRUE(v.add(9, "<s>", vocabulary::kind::control));
  EXPECT_EQ(v.id_of("<s>"), 9u);
  EXPECT_FALSE(v.word_of("<s>"));
  EXPECT_FALSE(v.has(5));
  for (uint32_t i = 10; i < 2'000; i++) ASSERT_TRUE(v.add(i, "t" + std::to_string(i)));
  for (uint32_t i = 10; i < 2'000; i++) ASSERT_EQ(v.id_of("t" + std::to_string(i)), i);
}

TEST(Bpe, JoinsTheLowestRankFirstAndOfEqualOnesTheLeftmost) {
  auto v = vocabulary_of({"a", "b", "c", "ab", "bc", "abc", "aa"});
  std::vector<bpe::text_pair> merges = {{"b", "c"}, {"a", "b"}, {"a", "bc"}, {"a", "a"}};
  auto model = bpe::make(v, {}, merges);
  ASSERT_TRUE(model);
  EXPECT_EQ(encoded(*model, "abc"), (ids{5}));
  EXPECT_EQ(encoded(*model, "abab"), (ids{3, 3}));
  EXPECT_EQ(encoded(*model, "aaa"), (ids{6, 0}));
  EXPECT_EQ(encoded(*model, ""), ids{});
}

TEST(Bpe, TakesAWholeWordOnlyWhereMergesAreIgnored) {
  auto v = vocabulary_of({"a", "b", "ab"});
  EXPECT_EQ(encoded(*bpe::make(v, {}, {}), "ab"), (ids{0, 1}));
  EXPECT_EQ(encoded(*bpe::make(v, {.ignore_merges = true}, {}), "ab"), (ids{2}));
}

// Of every length, whether merges make it or not; one letter more is no token.
TEST(Bpe, TakesWholeWordsOfAnyLengthWhereMergesAreIgnored) {
  vocabulary v;
  std::string word;
  for (; v.size() < 40;) ASSERT_TRUE(v.add(v.size(), word += "a"));
  std::vector<bpe::text_pair> merges = {{"a", "a"}, {"aa", "a"}};
  auto model = bpe::make(v, {.ignore_merges = true}, merges);
  for (uint32_t length = 1; length <= 40; length++)
    EXPECT_EQ(encoded(*model, std::string(length, 'a')), (ids{length - 1})) << length;
  EXPECT_GT(encoded(*model, std::string(41, 'a')).size(), 13u);
}

TEST(Bpe, FallsBackToBytesThenToTheUnknownToken) {
  vocabulary v = vocabulary_of({"<unk>", "a"});
  bpe_options with_unk{.unk = 0};
  EXPECT_EQ(encoded(*bpe::make(v, with_unk, {}), "xya"), (ids{0, 0, 1}));
  with_unk.fuse_unk = true;
  EXPECT_EQ(encoded(*bpe::make(v, with_unk, {}), "xyaz"), (ids{0, 1, 0}));
  EXPECT_EQ(encoded(*bpe::make(v, {}, {}), "xa"), (ids{1}));
  for (uint32_t b = 0; b < 256; b++) ASSERT_TRUE(v.add(2 + b, fmt::format("<0x{:02X}>", b)));
  with_unk.byte_fallback = true;
  EXPECT_EQ(encoded(*bpe::make(v, with_unk, {}), "\u00E9a"), (ids{2 + 0xC3, 2 + 0xA9, 1}));
}

TEST(Bpe, MarksContinuationsAndWordEnds) {
  auto v = vocabulary_of({"a", "##b", "a</w>", "##b</w>", "a##b", "ab</w>"});
  std::vector<bpe::text_pair> merges = {{"a", "##b</w>"}};
  bpe_options o{.continuing_prefix = "##", .end_suffix = "</w>"};
  auto model = bpe::make(v, o, merges);
  ASSERT_TRUE(model);
  EXPECT_EQ(encoded(*model, "ab"), (ids{5}));
  EXPECT_EQ(encoded(*model, "a"), (ids{2}));
}

TEST(Bpe, RefusesMergesThatTheVocabularyLacks) {
  auto v = vocabulary_of({"a", "b"});
  std::vector<bpe::text_pair> merges = {{"a", "b"}};
  EXPECT_FALSE(bpe::make(v, {}, merges));
}

TEST(Bpe, NeverMakesAControlToken) {
  auto v = vocabulary_of({"<", "s", ">", "<s"});
  ASSERT_TRUE(v.add(4, "<s>", vocabulary::kind::control));
  std::vector<bpe::text_pair> merges = {{"<", "s"}, {"<s", ">"}};
  EXPECT_EQ(encoded(*bpe::make(v, {.ignore_merges = true}, merges), "<s>"), (ids{3, 2}));
}

// The candidates looked at grow as the word does, not as its square.
TEST(Bpe, LooksAtFewCandidatesInAWordWithoutEnd) {
  vocabulary v;
  std::vector<std::string> powers = {"a"};
  for (int i = 0; i < 6; i++) powers.push_back(powers.back() + powers.back());
  for (auto& p : powers) ASSERT_TRUE(v.add(v.size(), p));
  std::vector<bpe::text_pair> merges;
  for (size_t i = 0; i + 1 < powers.size(); i++) merges.push_back({powers[i], powers[i]});
  auto model = bpe::make(v, {}, merges);
  ASSERT_TRUE(model);
  for (size_t n : {100'000u, 200'000u}) {
    bpe::scratch scratch(std::pmr::get_default_resource());
    std::pmr::vector<uint32_t> out;
    model->encode(std::string(n, 'a'), scratch, out);
    EXPECT_EQ(out.size(), n / 64 + std::popcount(n % 64));
    EXPECT_LT(scratch.steps, 3 * n);
  }
}

TEST(ScoreBpe, JoinsTheBestScoreFirst) {
  auto v = vocabulary_of({"<unk>", "a", "b", "c", "ab", "bc", "abc"});
  auto model = score_bpe::make(v, {0, 0, 0, 0, -2, -1, -3}, 0);
  ASSERT_TRUE(model);
  EXPECT_EQ(encoded(*model, "abc"), (ids{6}));  // by way of bc
  EXPECT_EQ(encoded(*model, "abab"), (ids{4, 4}));
  EXPECT_EQ(encoded(*model, "bcbx"), (ids{5, 2, 0}));
  EXPECT_FALSE(score_bpe::make(v, {0}, 0));
  EXPECT_FALSE(score_bpe::make(v, std::vector<float>(7, NAN), 0));
}

TEST(ScoreBpe, WritesUnknownCharactersAsBytes) {
  vocabulary v = vocabulary_of({"a"});
  std::vector<float> scores(257, 0);
  for (uint32_t b = 0; b < 256; b++) ASSERT_TRUE(v.add(1 + b, fmt::format("<0x{:02X}>", b)));
  auto model = score_bpe::make(v, scores, {});
  EXPECT_EQ(encoded(*model, "a\u20AC"), (ids{0, 1 + 0xE2, 1 + 0x82, 1 + 0xAC}));
}

// Every segmentation of `text`, by trying all; unknown characters cost as the model says.
double best_by_trying(const vocabulary& v, const std::vector<double>& scores, double unknown,
                      std::string_view text) {
  if (text.empty()) return 0;
  double best = -INFINITY;
  size_t character = utf8::at(text, 0).length;
  for (size_t n = 1; n <= text.size(); n++) {
    auto id = v.word_of(text.substr(0, n));
    bool unknown_one = n == character && !id;
    if (!id && !unknown_one) continue;
    double rest = best_by_trying(v, scores, unknown, text.substr(n));
    best = std::max(best, rest + (id ? scores[*id] : unknown));
  }
  return best;
}

TEST(Unigram, FindsTheBestOfAllSegmentations) {
  auto v = vocabulary_of({"<unk>", "a", "b", "ab", "ba", "aba", "\u00E9", "b\u00E9", "abab"});
  std::mt19937 random(5);
  const char* letters[] = {"a", "b", "\u00E9", "x"};
  for (int round = 0; round < 300; round++) {
    std::vector<double> scores(v.size());
    for (auto& s : scores) s = -double(random() % 1000) / 100;
    scores[0] = -20;  // unk is the lowest, so an unknown character costs 30
    auto model = unigram::make(v, scores, 0, false);
    ASSERT_TRUE(model);
    std::string text;
    for (uint32_t n = random() % 10; n > 0; n--) text += letters[random() % 4];
    double sum = 0;
    ids tokens = encoded(*model, text);
    for (uint32_t id : tokens) sum += id == 0 ? 0 : scores[id];
    for (char c : text) sum -= c == 'x' ? 30 : 0;
    EXPECT_NEAR(sum, best_by_trying(v, scores, -30, text), 1e-9) << text;
  }
}

TEST(Unigram, FusesUnknownCharactersOrWritesTheirBytes) {
  auto v = vocabulary_of({"<unk>", "a"});
  EXPECT_EQ(encoded(*unigram::make(v, {-1, -1}, 0, true), "xyaz"), (ids{0, 1, 0}));
  EXPECT_FALSE(unigram::make(v, {-1, -1}, {}, false));
  EXPECT_FALSE(unigram::make(v, {-1, -1}, 7, false));
  EXPECT_FALSE(unigram::make(v, {-1, INFINITY}, 0, false));
  for (uint32_t b = 0; b < 256; b++) ASSERT_TRUE(v.add(2 + b, fmt::format("<0x{:02X}>", b)));
  auto bytes = unigram::make(v, std::vector<double>(258, -1), 0, true);
  EXPECT_EQ(encoded(*bytes, "\u00E9a"), (ids{2 + 0xC3, 2 + 0xA9, 1}));
}

TEST(Wordpiece, TakesTheLongestPieceAndRefusesRests) {
  auto v = vocabulary_of({"[UNK]", "un", "##aff", "##able", "##a", "u"});
  wordpiece model{.tokens = &v};
  EXPECT_EQ(encoded(model, "unaffable"), (ids{1, 2, 3}));
  EXPECT_EQ(encoded(model, "unaffablex"), (ids{0}));
  EXPECT_EQ(encoded(model, std::string(101, 'u')), (ids{0}));
  model.whole_words = true;
  EXPECT_EQ(encoded(model, "un"), (ids{1}));
  EXPECT_EQ(encoded(model, "una"), (ids{0}));
}

}  // namespace
}  // namespace lethe
