// Captures of which it is known what they tell.
#include "runtime/audit/fingerprint.hpp"

#include <gtest/gtest.h>

#include <random>

#include "runtime/audit/stream_shapes.hpp"

namespace lethe::audit {
namespace {

constexpr double alpha = 1e-6;

/// Of `pieces` pieces of one size, `gap_ms` apart, blurred.
capture pieces_of(size_t pieces, uint32_t bytes, double gap_ms, std::mt19937_64& dice) {
  std::normal_distribution<double> blur(0, 1);
  capture c;
  for (size_t i = 0; i < pieces; ++i)
    c.push_back({gap_ms * double(i) + std::abs(blur(dice)), bytes});
  return c;
}

template <class Make>
captures each_prompt(size_t prompts, size_t each, Make make) {
  std::mt19937_64 dice(7);
  captures all(prompts);
  for (auto& of_prompt : all)
    for (size_t i = 0; i < each; ++i)
      of_prompt.push_back(make(size_t(&of_prompt - all.data()), dice));
  return all;
}

TEST(Fingerprint, TellsApartWhatHasSizesOfItsOwn) {
  auto all = each_prompt(20, 12, [](size_t prompt, auto& dice) {
    auto c = pieces_of(10, 200, 20, dice);
    c[prompt % 10].bytes += uint32_t(10 + prompt);
    return c;
  });
  auto f = fingerprint_of(all, 1);
  EXPECT_GT(f.all.made.share(), 0.95);
  EXPECT_EQ(f.all.made.of, 20u * 6);
}

TEST(Fingerprint, TellsApartWhatHasTimesOfItsOwn) {
  auto all = each_prompt(10, 16, [](size_t prompt, auto& dice) {
    return pieces_of(10, 200, 20 + 3 * double(prompt), dice);
  });
  auto f = fingerprint_of(all, 1);
  EXPECT_GT(f.all.made.share(), 0.9);
  EXPECT_FALSE(f.hidden(alpha));
}

TEST(Fingerprint, GuessesEqualOnesByChance) {
  auto all = each_prompt(25, 20, [](size_t, auto& dice) { return pieces_of(8, 200, 50, dice); });
  auto f = fingerprint_of(all, 1);
  EXPECT_GT(binomial_at_least(f.all.made, 1.0 / 25), alpha);
  EXPECT_LT(f.all.made.share(), 0.12);
  EXPECT_EQ(f.classes, 1u);
  EXPECT_DOUBLE_EQ(f.allowed, 1.0 / 25);
  EXPECT_TRUE(f.hidden(alpha));
}

TEST(Fingerprint, ClassesAreAllowedAndNothingWithinThem) {
  auto in_classes = [](double leak_ms) {
    return each_prompt(24, 16, [=](size_t prompt, auto& dice) {
      return pieces_of(4u << prompt % 3, 2048, 50 + leak_ms * double(prompt), dice);
    });
  };
  auto hidden = fingerprint_of(in_classes(0), 1);
  EXPECT_EQ(hidden.classes, 3u);
  EXPECT_DOUBLE_EQ(hidden.allowed, 3.0 / 24);
  EXPECT_DOUBLE_EQ(hidden.within_by_chance, 1.0 / 8);
  EXPECT_EQ(hidden.within.of, 24u * 8);
  EXPECT_TRUE(hidden.hidden(alpha)) << hidden.all_chance << ' ' << hidden.within_chance;
  auto leaks = fingerprint_of(in_classes(2), 1);
  EXPECT_FALSE(leaks.hidden(alpha));
  EXPECT_LT(leaks.within_chance, alpha);
}

/// An answer near a power of two is now below and now above it.
TEST(Fingerprint, PromptsOfTwoClassesCountForTheBoundAlone) {
  auto all = each_prompt(8, 40, [](size_t prompt, auto& dice) {
    size_t pieces = prompt < 4 ? 4 : prompt == 7 && dice() % 2 ? 4 : 8;
    return pieces_of(pieces, 2048, 50, dice);
  });
  auto f = fingerprint_of(all, 1);
  EXPECT_EQ(f.classes, 2u);
  EXPECT_DOUBLE_EQ(f.allowed, 2.0 / 8);
  EXPECT_EQ(f.within.of, 7u * 20);
  EXPECT_TRUE(f.hidden(alpha));
}

/// Heads before the pieces make other sums of bytes, and no other classes.
TEST(Fingerprint, PowersOfTwoAreFoundInWhatATapSees) {
  auto all = each_prompt(6, 8, [](size_t prompt, auto& dice) {
    auto c = pieces_of(2u << prompt % 2, 2086, 50, dice);
    c.front().bytes += uint32_t(200 + dice() % 50);
    return c;
  });
  EXPECT_EQ(fingerprint_of(all, 1, 2048).classes, 2u);
  EXPECT_GT(fingerprint_of(all, 1).classes, 10u);
}

TEST(Fingerprint, EmptyCapturesAreNoFault) {
  EXPECT_EQ(features_of({}).size(), features_of({{1, 2}, {3, 4}}).size());
  EXPECT_EQ(fingerprint_of(captures(3, {{}, {}}), 1).all.made.of, 3u);
}

TEST(JudgeCaptures, HoldsWhatIsAlikeAndBreaksWhatIsNot) {
  auto of_tick = [](double leak_ms) {
    return each_prompt(12, 16, [=](size_t prompt, auto& dice) {
      return pieces_of(8, 2048, 50 + leak_ms * double(prompt), dice);
    });
  };
  auto unshaped = each_prompt(12, 16, [](size_t prompt, auto& dice) {
    return pieces_of(5 + prompt, uint32_t(100 + prompt), 10, dice);
  });
  auto good = judge_captures(of_tick(0), unshaped);
  EXPECT_EQ(good.said, verdict::held) << good.measured;
  EXPECT_TRUE(good.stands()) << good.controls.at(0).measured;
  EXPECT_EQ(judge_captures(of_tick(2), {}).said, verdict::broken);
  EXPECT_FALSE(judge_captures(of_tick(0), of_tick(0)).stands()) << "that is no control";
  auto unpadded = each_prompt(
      12, 16, [](size_t prompt, auto& dice) { return pieces_of(6 + prompt % 6, 2048, 50, dice); });
  EXPECT_EQ(judge_captures(unpadded, {}).said, verdict::broken) << "no powers of two";
  EXPECT_EQ(judge_captures({unshaped.front()}, {}).said, verdict::not_measured);
}

}  // namespace
}  // namespace lethe::audit
