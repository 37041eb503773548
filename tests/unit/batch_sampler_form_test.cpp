// Draws where only some tokens are allowed.

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "runtime/batch/logprobs.hpp"
#include "runtime/batch/sampler.hpp"

namespace lethe {
namespace {

constexpr uint32_t vocab = 200;

struct drawing {
  std::vector<float> logits = std::vector<float>(vocab);
  std::vector<uint64_t> mask = std::vector<uint64_t>((vocab + 63) / 64);
  token_counts counts{std::pmr::get_default_resource()};
  sampler_scratch scratch{vocab, std::pmr::get_default_resource()};
  void allow(uint32_t id) { mask[id / 64] |= uint64_t{1} << id % 64; }
  bool allowed(uint32_t id) const { return mask[id / 64] >> id % 64 & 1; }
  sampled draw(const sampling& how, uint32_t position = 0) {
    return sample(logits, how, counts, 0, position, scratch, {}, mask.data());
  }
};

TEST(SamplerForm, NeverDrawsWhatIsNotAllowedHoweverItFilters) {
  std::mt19937 r(1);
  std::normal_distribution<float> normal(0, 8);
  for (int round = 0; round < 300; ++round) {
    drawing d;
    for (auto& l : d.logits) l = normal(r);
    for (uint32_t n = 1 + r() % 5; n > 0; --n) d.allow(r() % vocab);
    std::vector<logit_bias> bias{{uint32_t(r() % vocab), 100}, {uint32_t(r() % vocab), -100}};
    sampling how{.temperature = float(r() % 3), .top_k = uint32_t(r() % 4) * 30};
    if (r() % 2) how.typical_p = 0.9f;
    if (r() % 2) how.top_p = 0.95f;
    if (r() % 2) how.min_p = 0.05f;
    if (r() % 2) how.repetition_penalty = 1.3f;
    if (r() % 2) how.bias = bias;
    d.counts.add_output(uint32_t(r() % vocab));
    for (uint32_t p = 0; p < 20; ++p) ASSERT_TRUE(d.allowed(d.draw(how, p).id)) << round;
  }
}

TEST(SamplerForm, GreedyTakesTheBestAllowed) {
  drawing d;
  for (uint32_t id = 0; id < vocab; ++id) d.logits[id] = float(id);
  for (uint32_t id : {3u, 70u, 131u}) d.allow(id);
  EXPECT_EQ(d.draw({.temperature = 0}).id, 131u);
  std::vector<logit_bias> bias{{70, 100}, {199, 100}};
  sampling how{.temperature = 0};
  how.bias = bias;
  EXPECT_EQ(d.draw(how).id, 70u);
}

TEST(SamplerForm, PenaltiesCountForWhatIsAllowedAndBringNothingBack) {
  drawing d;
  for (uint32_t id = 0; id < vocab; ++id) d.logits[id] = float(id) - 150;
  for (uint32_t id : {130u, 131u}) d.allow(id);
  for (uint32_t id : {131u, 199u}) d.counts.add_output(id);
  EXPECT_EQ(d.draw({.temperature = 0}).id, 131u);
  EXPECT_EQ(d.draw({.temperature = 0, .presence_penalty = 2}).id, 130u);
  EXPECT_EQ(d.draw({.temperature = 0, .frequency_penalty = -2}).id, 131u);
  EXPECT_EQ(d.draw({.temperature = 0, .repetition_penalty = 0.01f}).id, 131u);
  EXPECT_EQ(d.draw({.temperature = 0, .repetition_penalty = 100}).id, 130u);
}

TEST(SamplerForm, WhereNothingAllowedIsAboveMinusInfinityTheLowestIdIsTaken) {
  for (float bad :
       {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    drawing d;
    d.allow(90);
    d.allow(150);
    d.logits[90] = d.logits[150] = bad;
    EXPECT_EQ(d.draw({.temperature = 0}).id, 90u);
    EXPECT_EQ(d.draw({}).id, 90u);
  }
}

TEST(SamplerForm, AllAllowedIsTheSameAsNoForm) {
  std::mt19937 r(2);
  std::normal_distribution<float> normal(0, 3);
  drawing d;
  for (auto& l : d.logits) l = normal(r);
  for (uint32_t id = 0; id < vocab; ++id) d.allow(id);
  for (uint32_t p = 0; p < 100; ++p)
    EXPECT_EQ(d.draw({.top_p = 0.9f, .seed = 5}, p).id,
              sample(d.logits, {.top_p = 0.9f, .seed = 5}, d.counts, 0, p, d.scratch).id);
}

TEST(SamplerForm, LogProbabilitiesStayThoseOfTheRawLogits) {
  drawing d;
  d.logits[7] = 5;
  d.allow(8);
  auto drawn = d.draw({.temperature = 0, .want_logprob = true});
  EXPECT_EQ(drawn.id, 8u);
  EXPECT_EQ(drawn.logprob, logprobs(d.logits, d.scratch.maxima()).of(8));
}

}  // namespace
}  // namespace lethe
