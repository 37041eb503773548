#include "parallel/cut.hpp"

#include <gtest/gtest.h>

namespace lethe {
namespace {

model_shape shape_of(uint32_t heads, uint32_t kv_heads, uint32_t layers = 4) {
  model_shape s;
  s.layers = layers, s.heads = heads, s.kv_heads = kv_heads, s.head_dim = 8;
  s.hidden = 64, s.ffn = 100, s.vocab = 70;
  return s;
}

std::string why(const model_shape& s, cut c) {
  auto fits = check_cut(s, c);
  return fits ? "" : fits.why().text;
}

TEST(Cut, SaysWhyItDoesNotFit) {
  EXPECT_EQ(why(shape_of(8, 8), {3, 1}),
            "--tensor 3: the model has 8 heads; tensor must divide them: 1, 2, 4, 8");
  EXPECT_EQ(why(shape_of(8, 8), {0, 1}), "--tensor 0: at least one rank is needed");
  EXPECT_EQ(why(shape_of(8, 8), {1, 0}), "--pipeline 0: at least one stage is needed");
  EXPECT_EQ(why(shape_of(8, 8), {1, 5}),
            "--pipeline 5: the model has 4 layers; every stage needs one: 1 to 4");
  EXPECT_EQ(why(shape_of(512, 8), {512, 1}),
            "--tensor 512 --pipeline 1: that is more than 256 ranks; use fewer");
  EXPECT_EQ(why(shape_of(8, 3), {1, 1}),
            "model: 8 heads and 3 key/value heads; the latter must divide the former");
}

TEST(Cut, TakesEveryDivisorOfTheHeads) {
  for (uint32_t heads : {1, 6, 7, 12, 32, 35})
    for (uint32_t tensor = 1; tensor <= heads; ++tensor)
      EXPECT_EQ(why(shape_of(heads, 1), {tensor, 2}).empty(), heads % tensor == 0);
}

void expect_covers(uint32_t total, const std::vector<range>& parts) {
  uint32_t at = 0;
  for (range r : parts) {
    EXPECT_EQ(r.begin, at);
    EXPECT_LE(r.begin, r.end);
    at = r.end;
  }
  EXPECT_EQ(at, total);
}

TEST(Cut, SharesEverythingOutOnce) {
  for (auto [heads, kv] : {std::pair{8u, 8u}, {8u, 2u}, {12u, 4u}, {35u, 7u}, {7u, 1u}})
    for (uint32_t tensor = 1; tensor <= heads; ++tensor) {
      if (heads % tensor != 0) continue;
      model_shape s = shape_of(heads, kv);
      std::vector<range> h, f, v;
      for (uint32_t r = 0; r < tensor; ++r) {
        shard_part p = part_for(s, {tensor, 1}, 0, r);
        h.push_back(p.heads), f.push_back(p.ffn), v.push_back(p.vocab);
      }
      expect_covers(heads, h), expect_covers(100, f), expect_covers(70, v);
    }
  std::vector<range> layers;
  for (uint32_t stage = 0; stage < 3; ++stage)
    layers.push_back(part_for(shape_of(8, 8), {1, 3}, stage, 0).layers);
  expect_covers(4, layers);
}

TEST(Cut, GivesEveryRankTheKeyHeadsItsHeadsLookAt) {
  for (auto [heads, kv] : {std::pair{8u, 8u}, {8u, 2u}, {12u, 4u}, {35u, 7u}, {8u, 1u}})
    for (uint32_t tensor = 1; tensor <= heads; ++tensor)
      for (uint32_t r = 0; heads % tensor == 0 && r < tensor; ++r) {
        shard_part p = part_for(shape_of(heads, kv), {tensor, 1}, 0, r);
        EXPECT_EQ(p.kv_heads.begin, p.heads.begin / (heads / kv));
        EXPECT_EQ(p.kv_heads.end - 1, (p.heads.end - 1) / (heads / kv));
      }
}

TEST(Cut, CutsTheVocabularyBetweenPanels) {
  for (uint32_t r = 0; r < 3; ++r)
    EXPECT_EQ(part_for(shape_of(6, 6), {3, 1}, 0, r).vocab.begin % panel_rows, 0u);
}

}  // namespace
}  // namespace lethe
