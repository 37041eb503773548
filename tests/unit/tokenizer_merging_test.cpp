#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "runtime/tokenizer/bpe.hpp"
#include "runtime/tokenizer/score_bpe.hpp"

// Both ways to join pairs against the plain one: look at all neighbours, join the best, again.
namespace lethe {
namespace {

using ids = std::vector<uint32_t>;
using texts = std::vector<std::string>;

const texts characters = {"a", "b", "c", "\u2581", "\u00E9", "\u4E2D"};

template <class Model>
ids encoded(const Model& model, std::string_view word, uint32_t window = 0) {
  typename Model::scratch scratch(std::pmr::get_default_resource());
  if constexpr (requires { scratch.window; })
    if (window > 0) scratch.window = window;
  std::pmr::vector<uint32_t> out;
  model.encode(word, scratch, out);
  return {out.begin(), out.end()};
}

/// Joins neighbours as long as `rank` knows a pair; the lowest rank first, then the leftmost.
template <class Rank>
texts joined(texts parts, Rank rank) {
  for (;;) {
    double best = INFINITY;
    size_t at = 0;
    for (size_t i = 0; i + 1 < parts.size(); i++) {
      double here = rank(parts[i], parts[i + 1]);
      if (here < best) best = here, at = i;
    }
    if (best == INFINITY) return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + int64_t(at) + 1);
  }
}

struct sample {
  sample(uint32_t seed, size_t size, size_t of = characters.size())
      : random(seed), alphabet(characters.begin(), characters.begin() + int64_t(of)) {
    for (auto& c : alphabet) add(c);
    while (merges.size() < size) {
      std::string left = tokens[random() % tokens.size()], right = tokens[random() % tokens.size()];
      if (left.size() + right.size() > 12) continue;
      add(left + right);
      merges.emplace_back(left, right);
    }
  }
  void add(const std::string& text) {
    if (v.id_of(text)) return;
    EXPECT_TRUE(v.add(v.size(), text));
    tokens.push_back(text);
  }
  texts word(size_t longest = 40) {
    texts out(random() % longest);
    for (auto& c : out) c = alphabet[random() % alphabet.size()];
    return out;
  }
  std::mt19937 random;
  texts alphabet;
  vocabulary v;
  texts tokens;
  std::vector<std::pair<std::string, std::string>> merges;
};

std::string whole(const texts& parts) {
  std::string all;
  for (auto& part : parts) all += part;
  return all;
}

/// The later rank of a pair that is named twice counts.
std::map<std::pair<std::string, std::string>, double> ranks_of(const sample& s) {
  std::map<std::pair<std::string, std::string>, double> ranks;
  for (size_t i = 0; i < s.merges.size(); i++) ranks[s.merges[i]] = double(i);
  return ranks;
}

// Rows of no pair, of one, of a bucket and of many, beside each other; the later rank counts.
TEST(MergeTable, KnowsEachPairAndNoOther) {
  std::mt19937 random(1);
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> wanted;
  std::vector<merge_table::merge> merges;
  for (uint32_t left = 0; left < 70; left++) {
    uint32_t count = left < 12 ? left : random() % 200;
    for (uint32_t i = 0; i < count; i++) merges.push_back({left, uint32_t(random()) % 300, 0});
  }
  std::ranges::shuffle(merges, random);
  for (uint32_t rank = 0; auto& m : merges) {
    m.rank = rank++;
    wanted[{m.left, m.right}] = m.rank;
  }
  merge_table table(merges);
  for (uint32_t left = 0; left < 80; left++)
    for (uint32_t right = 0; right < 310; right++) {
      auto found = wanted.find({left, right});
      EXPECT_EQ(table.rank(left, right), found == wanted.end() ? merge_table::never : found->second)
          << left << ", " << right;
    }
  EXPECT_EQ(merge_table().rank(0, 0), merge_table::never);
}

TEST(Bpe, JoinsAsThePlainWayDoes) {
  for (uint32_t seed = 0; seed < 40; seed++) {
    sample s(seed, 4 + seed % 20);
    std::vector<bpe::text_pair> pairs;
    for (auto& [left, right] : s.merges) pairs.push_back({left, right});
    auto model = bpe::make(s.v, {}, pairs);
    ASSERT_TRUE(model);
    auto ranks = ranks_of(s);
    auto rank = [&](const std::string& a, const std::string& b) {
      auto found = ranks.find({a, b});
      return found == ranks.end() ? INFINITY : found->second;
    };
    for (int round = 0; round < 30; round++) {
      texts word = s.word();
      ids wanted;
      for (auto& part : joined(word, rank)) wanted.push_back(*s.v.id_of(part));
      EXPECT_EQ(encoded(*model, whole(word)), wanted) << whole(word);
    }
  }
}

// Of so few characters that words don't fall apart; windows so short that they often disagree.
TEST(Bpe, JoinsLongWordsByWindowsAsThePlainWayDoes) {
  for (uint32_t seed = 0; seed < 40; seed++) {
    sample s(seed, 10 + seed, 2 + seed % 2);
    std::vector<bpe::text_pair> pairs;
    for (auto& [left, right] : s.merges) pairs.push_back({left, right});
    auto model = bpe::make(s.v, {}, pairs);
    ASSERT_TRUE(model);
    auto ranks = ranks_of(s);
    auto rank = [&](const std::string& a, const std::string& b) {
      auto found = ranks.find({a, b});
      return found == ranks.end() ? INFINITY : found->second;
    };
    for (int round = 0; round < 10; round++) {
      texts word = s.word(300);
      ids wanted;
      for (auto& part : joined(word, rank)) wanted.push_back(*s.v.id_of(part));
      for (uint32_t window : {1u, 8u, 13u, 32u, 100u, 512u})
        EXPECT_EQ(encoded(*model, whole(word), window), wanted) << window << ", " << whole(word);
    }
  }
}

TEST(ScoreBpe, JoinsAsThePlainWayDoes) {
  for (uint32_t seed = 0; seed < 40; seed++) {
    sample s(seed, 4 + seed % 20);
    std::vector<float> scores;
    for (size_t i = 0; i < s.tokens.size(); i++)
      scores.push_back(float(int(s.random() % 9)) / 2 - 2);  // both signs, and equal ones
    auto model = score_bpe::make(s.v, scores, {});
    ASSERT_TRUE(model);
    auto rank = [&](const std::string& a, const std::string& b) {
      auto id = s.v.id_of(a + b);
      return id ? -double(scores[*id]) : INFINITY;
    };
    for (int round = 0; round < 30; round++) {
      texts word = s.word();
      ids wanted;
      for (auto& part : joined(word, rank)) wanted.push_back(*s.v.id_of(part));
      EXPECT_EQ(encoded(*model, whole(word)), wanted) << whole(word);
    }
  }
}

// Inside of a word the same text is other symbols than alone.
TEST(Bpe, KnowsThePartsOfAWordByTheirAffixes) {
  vocabulary v;
  for (auto text : {"x", "l", "##l", "##o", "lo", "##lo", "o", "o</w>"})
    ASSERT_TRUE(v.add(v.size(), text));
  std::vector<bpe::text_pair> prefixed = {{"l", "##o"}, {"##l", "##o"}};
  auto model = bpe::make(v, {.continuing_prefix = "##"}, prefixed);
  ASSERT_TRUE(model);
  EXPECT_EQ(encoded(*model, "lo"), (ids{4}));
  EXPECT_EQ(encoded(*model, "xlo"), (ids{0, 5}));
  EXPECT_EQ(encoded(*model, "xlolo"), (ids{0, 5, 5}));

  std::vector<bpe::text_pair> suffixed = {{"l", "o"}};
  auto ends = bpe::make(v, {.end_suffix = "</w>"}, suffixed);
  ASSERT_TRUE(ends);
  EXPECT_EQ(encoded(*ends, "loxlo"), (ids{4, 0, 1, 7}));
}

// A short text's key is filled up with zeros, and so would be a text that ends in them.
TEST(Bpe, TellsAZeroFromTheEndOfAWord) {
  using namespace std::literals;
  vocabulary v;
  for (auto text : {"a"sv, "b"sv, "ab"sv, "\0"sv}) ASSERT_TRUE(v.add(v.size(), text));
  std::vector<bpe::text_pair> merges = {{"a", "b"}};
  auto model = bpe::make(v, {}, merges);
  ASSERT_TRUE(model);
  EXPECT_EQ(encoded(*model, "ab"), (ids{2}));
  EXPECT_EQ(encoded(*model, "ab\0"sv), (ids{2, 3}));
}

// Its text ends in the character ">", but what joins is the byte.
TEST(Bpe, JoinsByteTokensWhereAMergeNamesThem) {
  vocabulary v;
  for (auto text : {"a", "<0xC3>", "<0xA9>", "<0xC3><0xA9>", "a<0xC3><0xA9>"})
    ASSERT_TRUE(v.add(v.size(), text));
  for (uint32_t b = 0; b < 256; b++) {
    if (b == 0xC3 || b == 0xA9) continue;
    ASSERT_TRUE(v.add(v.size(), fmt::format("<0x{:02X}>", b)));
  }
  std::vector<bpe::text_pair> merges = {{"<0xC3>", "<0xA9>"}, {"a", "<0xC3><0xA9>"}};
  auto model = bpe::make(v, {.byte_fallback = true}, merges);
  ASSERT_TRUE(model);
  EXPECT_EQ(encoded(*model, "a\u00E9"), (ids{4}));
}

}  // namespace
}  // namespace lethe
