#include <gtest/gtest.h>

#include <limits>

#include "runtime/base/limits.hpp"
#include "runtime/batch/sampling.hpp"

namespace lethe {
namespace {

constexpr uint32_t vocab = 1000;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::string refusal(const sampling& how) {
  auto checked = check_sampling(how, vocab);
  return checked ? "" : checked.why().text;
}

struct float_case {
  const char* name;
  float sampling::*member;
  std::vector<float> good, bad;
};

TEST(Sampling, RefusesWhatIsOutOfRangeByName) {
  const float_case cases[] = {
      {"temperature", &sampling::temperature, {0, 1e-30f, 2, 100}, {-0.1f, 101, infinity, nan}},
      {"typical_p", &sampling::typical_p, {1e-6f, 1}, {0, -1, 1.1f, nan}},
      {"top_p", &sampling::top_p, {1e-6f, 1}, {0, -1, 1.1f, infinity, nan}},
      {"min_p", &sampling::min_p, {0, 1}, {-0.1f, 1.1f, nan}},
      {"repetition_penalty", &sampling::repetition_penalty, {0.1f, 100}, {0, -1, 101, nan}},
      {"presence_penalty", &sampling::presence_penalty, {-2, 2}, {-2.1f, 2.1f, nan}},
      {"frequency_penalty", &sampling::frequency_penalty, {-2, 2}, {-2.1f, 2.1f, -infinity}},
  };
  for (const auto& c : cases) {
    for (float value : c.good) {
      sampling how;
      how.*c.member = value;
      EXPECT_EQ(refusal(how), "") << c.name << " " << value;
    }
    for (float value : c.bad) {
      sampling how;
      how.*c.member = value;
      EXPECT_TRUE(refusal(how).starts_with(c.name)) << c.name << " " << value << refusal(how);
    }
  }
}

TEST(Sampling, SaysValueAndRange) {
  EXPECT_EQ(refusal({.top_p = 1.5f}), "top_p is 1.5; allowed is (0, 1]");
  EXPECT_EQ(refusal({.temperature = -1}), "temperature is -1; allowed is [0, 100]");
}

TEST(Sampling, BoundsLogprobs) {
  EXPECT_EQ(refusal({.logprobs = limits::logprobs_max}), "");
  EXPECT_EQ(refusal({.logprobs = limits::logprobs_max + 1}),
            "logprobs is 129; at most 128 are allowed");
  EXPECT_TRUE(check_sampling({.logprobs = 5}, 5));
  EXPECT_FALSE(check_sampling({.logprobs = 6}, 5));
}

TEST(Sampling, BoundsBiases) {
  std::vector<logit_bias> biases(limits::logit_bias_max, {vocab - 1, -100});
  EXPECT_EQ(refusal({.bias = biases}), "");
  biases.push_back({0, 0});
  EXPECT_EQ(refusal({.bias = biases}), "logit_bias has 1025 entries; at most 1024 are allowed");
  for (logit_bias bad : {logit_bias{vocab, 0}, {0, 101}, {0, nan}, {0, -infinity}}) {
    EXPECT_TRUE(refusal({.bias = {&bad, 1}}).starts_with("logit_bias"));
  }
}

}  // namespace
}  // namespace lethe
