#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/cpu_row.hpp"
#include "runtime/batch/logits.hpp"
#include "runtime/batch/logprobs.hpp"

namespace lethe {
namespace {

TEST(Logprobs, AreLogarithmsOfTheSoftmax) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(100, 5);
  for (uint32_t vocab : {1u, 2u, 31u, 32u, 33u, 1000u}) {
    std::vector<float> logits(vocab);
    for (float& l : logits) l = normal(random);
    long double sum = 0;
    for (float l : logits) sum += std::exp((long double)l);
    std::vector<float> room(draw_blocks(vocab));
    logprobs mine(logits, room);
    for (uint32_t id = 0; id < vocab; ++id) {
      EXPECT_NEAR(mine.of(id), double(logits[id] - std::log(sum)), 2e-6);
    }
  }
}

TEST(Logprobs, ListTheMostLikelyLowestIdFirstAmongEquals) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    // Longer than a block that is passed over at once, too.
    std::vector<float> logits(1 + random() % (round % 2 ? 60 : 1500));
    for (float& l : logits) l = float(random() % (round % 3 ? 10 : 1000));
    std::vector<uint32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&logits](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
    std::vector<float> room(draw_blocks(logits.size()));
    logprobs mine(logits, room);
    std::vector<token_logprob> top(random() % 20);
    uint32_t found = mine.top(top);
    ASSERT_EQ(found, std::min(top.size(), logits.size()));
    for (uint32_t i = 0; i < found; ++i) {
      EXPECT_EQ(top[i].id, order[i]);
      EXPECT_EQ(top[i].logprob, mine.of(order[i]));
    }
  }
}

TEST(Logprobs, AreEvenWhereNothingIsAboveMinusInfinity) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> logits{-infinity, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> room(1);
  logprobs mine(logits, room);
  EXPECT_NEAR(mine.of(0), -std::log(2), 1e-6);
  EXPECT_NEAR(mine.of(1), -std::log(2), 1e-6);
}

size_t first_of_largest(const std::vector<float>& logits) {
  std::vector<float> maxima(draw_blocks(logits.size()));
  best_cpu_row().draw.maxima(logits.data(), logits.size(), maxima.data());
  return index_of_largest(logits, maxima);
}

TEST(Logits, TheLargestIsFoundInEveryBlockAndTheFirstOfEqualOnes) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t size : {1u, 31u, 32u, 255u, 256u, 257u, 3072u}) {
    std::vector<float> logits(size, -1);
    for (size_t at : {size_t{0}, size / 2, size - 1}) {
      logits[at] = 5;
      EXPECT_EQ(first_of_largest(logits), at);
      logits.back() = 5;
      EXPECT_EQ(first_of_largest(logits), at) << "the first of two";
      logits[at] = logits.back() = -1;
    }
    EXPECT_EQ(first_of_largest(std::vector<float>(size, nan)), 0u);
    EXPECT_EQ(first_of_largest(std::vector<float>(size, logit_lowest)), 0u);
    std::vector<float> one(size, nan);
    one.back() = -3;
    EXPECT_EQ(first_of_largest(one), size - 1);
  }
}

}  // namespace
}  // namespace lethe
