#include "parallel/shape.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace lethe {
namespace {

rope_shape llama31() {
  rope_shape r;
  r.theta = 500000, r.rotary = 128;
  r.scaling = rope_scaling::llama3;
  r.factor = 8, r.low_freq_factor = 1, r.high_freq_factor = 4, r.original_context = 8192;
  return r;
}

rope_shape qwen25_yarn() {
  rope_shape r;
  r.theta = 1e6, r.rotary = 128;
  r.scaling = rope_scaling::yarn;
  r.factor = 4, r.original_context = 32768;
  return r;
}

TEST(Rope, HalvesThePairsAndFallsGeometrically) {
  rope_shape r;
  r.theta = 10000, r.rotary = 4;
  auto f = rope_frequencies(r);
  ASSERT_EQ(f.size(), 2u);
  EXPECT_DOUBLE_EQ(f[0], 1);
  EXPECT_DOUBLE_EQ(f[1], 0.01);
  EXPECT_EQ(rope_magnitude(r), 1);
}

TEST(Rope, LinearDividesEveryFrequency) {
  rope_shape r;
  r.theta = 10000, r.rotary = 4, r.scaling = rope_scaling::linear, r.factor = 4;
  auto f = rope_frequencies(r);
  EXPECT_DOUBLE_EQ(f[0], 0.25);
  EXPECT_DOUBLE_EQ(f[1], 0.0025);
}

// Wavelengths below 2048 stay, above 8192 are stretched by 8. Pair 32: 2 pi sqrt(500000) = 4442.9,
// smooth = (8192 / 4442.88 - 1) / 3 = 0.281283.
TEST(Rope, Llama3KeepsShortWavesAndStretchesLongOnes) {
  auto f = rope_frequencies(llama31());
  EXPECT_DOUBLE_EQ(f[0], 1);
  EXPECT_DOUBLE_EQ(f[28], std::pow(500000, -28 / 64.0));
  EXPECT_NEAR(f[32] * std::sqrt(500000.0), (1 - 0.2812826) / 8 + 0.2812826, 1e-6);
  EXPECT_DOUBLE_EQ(f[63], std::pow(500000, -63 / 64.0) / 8);
}

// ln(32768 / (32 * 2 pi)) * 128 / (2 ln 1e6) = 23.596, the same with 1 instead of 32: 39.651
// (before rounding).
TEST(Rope, YarnRampsBetweenThePairsOfItsTwoBetas) {
  auto f = rope_frequencies(qwen25_yarn());
  auto plain = [](uint32_t i) { return std::pow(1e6, -2.0 * i / 128); };
  EXPECT_DOUBLE_EQ(f[0], 1);
  EXPECT_DOUBLE_EQ(f[23], plain(23));
  EXPECT_DOUBLE_EQ(f[40], plain(40) / 4);
  EXPECT_DOUBLE_EQ(f[63], plain(63) / 4);
  double ramp = (30 - 23) / 17.0;  // floor and ceiling of the range
  EXPECT_DOUBLE_EQ(f[30], plain(30) / 4 * ramp + plain(30) * (1 - ramp));
  EXPECT_DOUBLE_EQ(rope_magnitude(qwen25_yarn()), 0.1 * std::log(4.0) + 1);
}

TEST(Rope, YarnDoesNotRoundItsRangeWhenToldNotTo) {
  rope_shape r = qwen25_yarn();
  r.truncate = false;
  EXPECT_NEAR(rope_frequencies(r)[30] / std::pow(1e6, -60.0 / 128),
              1 - 0.75 * (30 - 23.5959) / (39.6509 - 23.5959), 1e-5);
}

TEST(Rope, YarnTakesAGivenAttentionFactor) {
  rope_shape r = qwen25_yarn();
  r.attention_factor = 1.5;
  EXPECT_EQ(rope_magnitude(r), 1.5);
  r.attention_factor = 0, r.factor = 1;
  EXPECT_EQ(rope_magnitude(r), 1);
}

TEST(Rope, FactorsOfAFileDivideBeforeTheScaling) {
  rope_shape r;
  r.theta = 10000, r.rotary = 4, r.factors = {2, 8};
  auto f = rope_frequencies(r);
  EXPECT_DOUBLE_EQ(f[0], 0.5);
  EXPECT_DOUBLE_EQ(f[1], 0.01 / 8);
  r.scaling = rope_scaling::linear, r.factor = 2;
  EXPECT_DOUBLE_EQ(rope_frequencies(r)[1], 0.01 / 16);
}

}  // namespace
}  // namespace lethe
