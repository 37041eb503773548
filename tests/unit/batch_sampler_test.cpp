#include "runtime/batch/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "runtime/base/limits.hpp"
#include "runtime/batch/counter_rng.hpp"

namespace lethe {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct sampler {
  explicit sampler(uint32_t vocab)
      : counts(std::pmr::get_default_resource()),
        scratch(vocab, std::pmr::get_default_resource()) {}

  sampled draw(const std::vector<float>& logits, const sampling& how, uint32_t choice = 0,
               uint32_t position = 0) {
    top.resize(how.logprobs);
    return sample(logits, how, counts, choice, position, scratch, top);
  }

  token_counts counts;
  sampler_scratch scratch;
  std::vector<token_logprob> top;
};

struct likely {
  uint32_t id;
  double p;
};

void normalize(std::vector<likely>& all) {
  double sum = 0;
  for (auto& t : all) sum += t.p;
  for (auto& t : all) t.p /= sum;
}

/// Keeps the shortest prefix that holds `mass`.
void keep_mass(std::vector<likely>& all, double mass) {
  double sum = 0;
  size_t n = 0;
  while (n < all.size() && sum < mass) sum += all[n++].p;
  all.resize(n);
  normalize(all);
}

/// The definitions, one after the other over sorted lists: what may be drawn, by id.
std::vector<likely> naive(const std::vector<float>& logits, const sampling& how) {
  std::vector<likely> all;
  double largest = *std::max_element(logits.begin(), logits.end());
  for (uint32_t id = 0; id < logits.size(); ++id) {
    all.push_back({id, std::exp((logits[id] - largest) / how.temperature)});
  }
  auto by_logit = [&logits](const likely& a, const likely& b) {
    return logits[a.id] > logits[b.id] || (logits[a.id] == logits[b.id] && a.id < b.id);
  };
  std::sort(all.begin(), all.end(), by_logit);
  if (how.top_k > 0 && how.top_k < all.size()) all.resize(how.top_k);
  normalize(all);
  if (how.typical_p < 1) {
    double entropy = 0;
    for (auto& t : all) entropy -= t.p > 0 ? t.p * std::log(t.p) : 0;
    auto distance = [entropy](const likely& t) { return std::abs(-std::log(t.p) - entropy); };
    std::stable_sort(all.begin(), all.end(), [distance](const likely& a, const likely& b) {
      return distance(a) < distance(b);
    });
    keep_mass(all, how.typical_p);
    std::sort(all.begin(), all.end(), by_logit);
  }
  if (how.top_p < 1) keep_mass(all, how.top_p);
  double least = how.min_p * all.front().p;
  std::erase_if(all, [least](const likely& t) { return t.p < least; });
  normalize(all);
  std::ranges::sort(all, {}, &likely::id);
  return all;
}

uint32_t naive_draw(const std::vector<likely>& from, double u) {
  double sum = 0;
  for (auto& t : from) {
    sum += t.p;
    if (sum > u) return t.id;
  }
  return from.back().id;
}

std::vector<float> random_logits(std::mt19937& random, uint32_t vocab, float scale, bool ties) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> logits(vocab);
  for (float& l : logits) l = ties ? std::round(normal(random)) : normal(random);
  return logits;
}

sampling random_sampling(std::mt19937& random, uint32_t vocab) {
  auto unit = [&random] { return float(random() % 998 + 1) / 1000; };
  sampling how;
  how.seed = random();
  how.temperature = 0.2f + 2 * unit();
  if (random() % 2) how.top_k = 1 + random() % (random() % 2 ? vocab + 2 : 40);
  if (random() % 3 == 0) how.typical_p = unit();
  if (random() % 2) how.top_p = unit();
  if (random() % 3 == 0) how.min_p = unit();
  return how;
}

void expect_naive(uint32_t vocab, int rounds, uint32_t seed) {
  std::mt19937 random(seed);
  sampler mine(vocab);
  for (int round = 0; round < rounds; ++round) {
    auto how = random_sampling(random, vocab);
    auto logits = random_logits(random, vocab, 3, random() % 2);
    auto from = naive(logits, how);
    for (uint32_t position = 0; position < 20; ++position) {
      uint32_t expected = naive_draw(from, uniform_at(how.seed, 7, position));
      ASSERT_EQ(mine.draw(logits, how, 7, position).id, expected)
          << "round " << round << " position " << position << " temperature " << how.temperature
          << " top_k " << how.top_k << " typical_p " << how.typical_p << " top_p " << how.top_p
          << " min_p " << how.min_p;
    }
  }
}

TEST(Sampler, DrawsWhatTheDefinitionsSayFromFewTokens) {
  expect_naive(1, 20, 1);
  expect_naive(2, 200, 2);
  expect_naive(17, 2000, 3);
}

TEST(Sampler, DrawsWhatTheDefinitionsSayFromManyTokens) {
  expect_naive(1000, 300, 4);
  expect_naive(20000, 60, 5);
}

/// Pearson's statistic of n draws of `how` against the naive probabilities.
double chi_square(const std::vector<float>& logits, const sampling& expected, const sampling& how,
                  int n) {
  std::map<uint32_t, int> seen;
  sampler mine(uint32_t(logits.size()));
  for (int i = 0; i < n; ++i) ++seen[mine.draw(logits, how, 0, uint32_t(i)).id];
  double chi = 0;
  for (auto& t : naive(logits, expected)) chi += std::pow(seen[t.id] - n * t.p, 2) / (n * t.p);
  return chi;
}

TEST(Sampler, DrawsInProportionToTheProbabilities) {
  std::vector<float> logits{0.5f, 1.5f, -1, 0, 2, 0.25f, 1, -0.5f, 0, 1};
  sampling how{.temperature = 0.8f, .seed = 23};
  double bound = 27.88;  // 9 degrees of freedom, p = 0.001
  EXPECT_LT(chi_square(logits, how, how, 100000), bound);
  sampling warmer = how;
  warmer.temperature = 0.83f;
  EXPECT_GT(chi_square(logits, how, warmer, 100000), bound) << "a biased sampler must be seen";
}

TEST(Sampler, RepeatsADrawWhateverWasDrawnBefore) {
  std::mt19937 random(6);
  auto logits = random_logits(random, 500, 1, false);
  sampling how{.seed = 99};
  sampler one(500), other(500);
  std::vector<uint32_t> forward, backward;
  for (uint32_t p = 0; p < 50; ++p) forward.push_back(one.draw(logits, how, 1, p).id);
  for (uint32_t p = 50; p-- > 0;) backward.push_back(other.draw(logits, how, 1, p).id);
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
  std::vector<uint32_t> another;
  for (uint32_t p = 0; p < 50; ++p) another.push_back(one.draw(logits, how, 2, p).id);
  EXPECT_NE(forward, another);
}

TEST(Sampler, IsGreedyAtTemperatureZeroAndTowardsIt) {
  std::mt19937 random(7);
  sampler mine(300);
  for (int round = 0; round < 100; ++round) {
    auto logits = random_logits(random, 300, 2, false);
    auto best = uint32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
    auto at = [&](sampling how) { return mine.draw(logits, how, 0, uint32_t(round)).id; };
    EXPECT_EQ(at({.temperature = 0}), best);
    EXPECT_EQ(at({.temperature = 1e-30f}), best);
    EXPECT_EQ(at({.temperature = 1e-6f}), best);
    EXPECT_EQ(at({.temperature = 2, .top_k = 1}), best);
    EXPECT_EQ(at({.temperature = 2, .top_p = 1e-6f}), best);
    EXPECT_EQ(at({.temperature = 2, .min_p = 1}), best);
  }
}

TEST(Sampler, TakesTheLowestIdAmongEquals) {
  sampler mine(4);
  EXPECT_EQ(mine.draw({1, 3, 3, 3}, {.temperature = 0}).id, 1u);
  EXPECT_EQ(mine.draw({1, 3, 3, 3}, {.top_k = 1}).id, 1u);
  for (uint32_t p = 0; p < 100; ++p) {
    EXPECT_LE(mine.draw({3, 3, 3, 3}, {.top_k = 2}, 0, p).id, 1u);
    EXPECT_LE(mine.draw({3, 3, 3, 3}, {.top_p = 0.5f}, 0, p).id, 1u);
  }
}

TEST(Sampler, TakesNanAndInfinitiesForWhatTheyAre) {
  sampler mine(4);
  for (float temperature : {0.0f, 1.0f}) {
    sampling how{.temperature = temperature};
    sampling typical{.temperature = temperature, .typical_p = 0.9f, .top_p = 0.9f, .min_p = 0.1f};
    sampling few{.temperature = temperature, .top_k = 3};
    for (const sampling& h : {how, typical, few}) {
      for (uint32_t p = 0; p < 50; ++p) {
        EXPECT_EQ(mine.draw({nan, nan, 1, -infinity}, h, 0, p).id, 2u);
        EXPECT_EQ(mine.draw({1, infinity, 5, nan}, h, 0, p).id, 1u);
        EXPECT_EQ(mine.draw({-infinity, nan, -infinity, nan}, h, 0, p).id, 0u);
      }
    }
  }
  sampling how{.want_logprob = true, .logprobs = 2};
  auto drawn = mine.draw({nan, infinity, -infinity, nan}, how);
  EXPECT_EQ(drawn.logprob, 0);
  EXPECT_EQ(mine.top[0].id, 1u);
  EXPECT_EQ(mine.top[1].logprob, -infinity);
}

TEST(Sampler, NeverDrawsWhatHasNoProbability) {
  sampler mine(3);
  for (uint32_t p = 0; p < 1000; ++p) {
    EXPECT_NE(mine.draw({0, -infinity, 0}, {}, 0, p).id, 1u);
    EXPECT_EQ(mine.draw({0, -2000, -3000}, {}, 0, p).id, 0u);
  }
}

TEST(Sampler, PenalizesAsComputedByHand) {
  sampler mine(5);
  mine.counts.add_prompt(std::vector<uint32_t>{0, 1, 0});
  mine.counts.add_output(2);
  mine.counts.add_output(2);
  mine.counts.add_output(3);
  auto greedy = [&mine](sampling how, std::vector<float> logits) {
    how.temperature = 0;
    return mine.draw(logits, how).id;
  };
  // Repetition, prompt and output: 4 / 2 < 2.1, -1 * 2 < -1.9.
  EXPECT_EQ(greedy({.repetition_penalty = 2}, {4, -9, -9, -9, 2.1f}), 4u);
  EXPECT_EQ(greedy({.repetition_penalty = 2}, {4, -9, -9, -9, 1.9f}), 0u);
  EXPECT_EQ(greedy({.repetition_penalty = 2}, {-9, -9, -9, -1, -1.9f}), 4u);
  // Presence once, frequency by count, both over the output alone.
  EXPECT_EQ(greedy({.presence_penalty = 2}, {0, 0, 2.5f, 0, 0.6f}), 4u);
  EXPECT_EQ(greedy({.presence_penalty = 2}, {0, 0, 2.5f, 0, 0.4f}), 2u);
  EXPECT_EQ(greedy({.frequency_penalty = 1}, {0, 0, 2.5f, 0, 0.6f}), 4u);
  EXPECT_EQ(greedy({.frequency_penalty = 1}, {0, 0, 2.5f, 0, 0.4f}), 2u);
  EXPECT_EQ(greedy({.presence_penalty = 2, .frequency_penalty = 2}, {1, 0, 0, 0, 0.9f}), 0u);
  // Repetition first: 4 / 2 - 1 * 2 - 0.5 = -0.5.
  sampling all{.repetition_penalty = 2, .presence_penalty = 0.5f, .frequency_penalty = 1};
  EXPECT_EQ(greedy(all, {-9, -9, 4, -9, -0.4f}), 4u);
  EXPECT_EQ(greedy(all, {-9, -9, 4, -9, -0.6f}), 2u);
}

TEST(Sampler, AddsBiasesAfterPenalties) {
  sampler mine(3);
  mine.counts.add_output(0);
  logit_bias biases[] = {{0, 3}, {2, 1}, {2, 1}};
  // Token 0: 4 / 2 + 3 = 5; token 2: 0 + 1 + 1.
  sampling how{.temperature = 0, .repetition_penalty = 2, .bias = biases};
  EXPECT_EQ(mine.draw({4, 4.9f, 0}, how).id, 0u);
  EXPECT_EQ(mine.draw({4, 5.1f, 0}, how).id, 1u);
  EXPECT_EQ(mine.draw({-9, 1.9f, 0}, how).id, 2u);
}

/// Changed logits lie where their distances will: none may be read after it is written over.
TEST(Sampler, DrawsAlikeFromLogitsThatABiasOfZeroChanged) {
  constexpr uint32_t vocab = 20 * draw_block + 7;
  sampler s(vocab);
  std::vector<float> logits(vocab, -3);
  for (uint32_t id : {3u, 4u, 5u, 6u, 300u, 700u, 2000u, 5000u}) logits[id] = 4 + float(id % 3);
  const logit_bias nothing[] = {{100, 0}};
  for (uint32_t k : {0u, 7u, 8u, 1000u}) {
    for (uint32_t position = 0; position < 200; ++position) {
      sampling how{.top_k = k, .seed = 3};
      uint32_t plain = s.draw(logits, how, 0, position).id;
      how.bias = nothing;
      ASSERT_EQ(s.draw(logits, how, 0, position).id, plain) << k << ' ' << position;
    }
  }
}

TEST(Sampler, ReportsLogprobsOfTheRawLogits) {
  sampler mine(3);
  logit_bias ban[] = {{1, -100}};
  sampling how{.temperature = 0, .bias = ban, .want_logprob = true, .logprobs = 2};
  float logits[] = {std::log(0.3f), std::log(0.6f), std::log(0.1f)};
  auto drawn = mine.draw({logits[0], logits[1], logits[2]}, how);
  EXPECT_EQ(drawn.id, 0u);
  EXPECT_NEAR(drawn.logprob, std::log(0.3), 1e-6);
  EXPECT_EQ(mine.top[0].id, 1u);
  EXPECT_NEAR(mine.top[0].logprob, std::log(0.6), 1e-6);
  EXPECT_EQ(mine.top[1].id, 0u);
}

/// All weigh the same, or nearly: a cut has them all in question, and takes the lowest ids.
TEST(Sampler, CutsAmongManyEquals) {
  constexpr uint32_t vocab = 3000;
  sampler mine(vocab);
  std::vector<float> equal(vocab, 2), near = equal;
  for (uint32_t id = 0; id < vocab; ++id) near[id] += float(id % 7) * 1e-6f;
  for (const sampling& how : {sampling{.top_p = 0.1f}, {.top_k = 300}, {.typical_p = 0.1f}}) {
    bool ties = how.typical_p < 1;  // as near to the mean from both sides, but for rounding
    for (uint32_t p = 0; p < 200; ++p) {
      EXPECT_LT(mine.draw(equal, how, 0, p).id, 300u);
      uint32_t drawn = mine.draw(near, how, 0, p).id;
      EXPECT_TRUE(ties || drawn == naive_draw(naive(near, how), uniform_at(0, 0, p)));
    }
  }
}

TEST(Sampler, LeavesNothingInAWipedScratch) {
  constexpr uint32_t vocab = 5000;
  std::vector<std::byte> memory(sampler_scratch::bytes(vocab) + 1024);
  std::pmr::monotonic_buffer_resource arena(memory.data(), memory.size(),
                                            std::pmr::null_memory_resource());
  sampler_scratch scratch(vocab, &arena);
  token_counts none(std::pmr::get_default_resource());
  logit_bias bias[] = {{1, 1}};
  std::mt19937 random(8);
  auto logits = random_logits(random, vocab, 3, false);
  auto dirty = [&memory] {
    return std::ranges::count_if(memory, [](auto b) { return b != std::byte{}; });
  };
  for (const sampling& how : {sampling{.bias = bias},
                              {.top_k = 5},
                              {.top_k = 500},
                              {.typical_p = 0.5f},
                              {.typical_p = 0.9f, .top_p = 0.9f, .min_p = 0.01f}}) {
    sample(logits, how, none, 0, 0, scratch);
    EXPECT_GT(dirty(), 20);
    scratch.wipe();
    EXPECT_EQ(dirty(), 0);
  }
}

}  // namespace
}  // namespace lethe
