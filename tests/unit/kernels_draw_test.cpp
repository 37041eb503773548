#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu_row.hpp"
#include "kernels/draw_policy.hpp"
#include "tests/unit/kernels_attend_paged.hpp"

namespace lethe {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr size_t sizes[] = {1, 15, 16, 17, 255, 256, 257, 1000, 128'256};

/// What a row makes of some logits, each array as long as it must be.
struct drawn_arrays {
  std::vector<float> x, w, sums, allowed, maxima;
  std::vector<uint32_t> places, near;
  double weighted = 0, all = 0;
  draw_masses masses{};
  bool operator==(const drawn_arrays& o) const {
    return same_bits(x, o.x) && same_bits(w, o.w) && same_bits(sums, o.sums) &&
           same_bits(allowed, o.allowed) && same_bits(maxima, o.maxima) && places == o.places &&
           near == o.near && weighted == o.weighted && all == o.all &&
           std::ranges::equal(masses, o.masses, [](const draw_mass& a, const draw_mass& b) {
             return a.weight == b.weight && a.count == b.count;
           });
  }
};

float largest_of_all(const std::vector<float>& logits) {
  float most = -infinity;
  for (float l : logits) most = l > most ? l : most;
  return most;
}

drawn_arrays weighed(const draw_row& row, const std::vector<float>& logits, float temperature) {
  size_t blocks = draw_blocks(logits.size()), whole = blocks * draw_block;
  drawn_arrays a{.x = std::vector<float>(whole, 99),
                 .w = std::vector<float>(whole, 99),
                 .sums = std::vector<float>(blocks, 99)};
  a.weighted = row.weigh(logits.data(), logits.size(), largest_of_all(logits), temperature,
                         a.x.data(), a.w.data(), a.sums.data());
  return a;
}

drawn_arrays everything(const draw_row& row, const std::vector<float>& logits) {
  auto a = weighed(row, logits, 0.7f);
  size_t blocks = a.sums.size();
  EXPECT_EQ(row.weighted(a.x.data(), a.w.data(), blocks), a.weighted);
  a.all = row.weight_of_all(logits.data(), logits.size(), largest_of_all(logits));
  row.mass_from(a.x.data(), -3, a.w.data(), blocks, {-2, -1, -3}, a.masses);
  a.places.resize(a.x.size());
  a.places.resize(row.find(a.x.data(), blocks, -4, -1, a.places.data()));
  a.near.resize(a.x.size());
  a.near.resize(row.find_near(a.x.data(), -3, blocks, -4, -1, a.near.data()));
  row.drop_far(a.x.data(), -3, blocks, -2, a.w.data(), a.sums.data());
  row.drop_light(blocks, 0.2f, a.w.data(), a.sums.data());
  std::vector<uint64_t> bits((logits.size() + 63) / 64);
  for (size_t i = 0; i < logits.size(); i += 3) bits[i / 64] |= uint64_t{1} << i % 64;
  a.maxima.resize(blocks);
  row.maxima(logits.data(), logits.size(), a.maxima.data());
  a.allowed.resize(logits.size());
  row.allow(logits.data(), bits.data(), logits.size(), a.allowed.data());
  return a;
}

std::vector<float> some_logits(size_t n) {
  auto logits = normal_floats(uint32_t(n), uint32_t(n), 4);
  if (n > 20) logits[3] = nan, logits[7] = -infinity, logits[9] = -1000, logits[n - 1] = nan;
  return logits;
}

TEST(DrawRow, EveryRowGivesTheReferencesBits) {
  const draw_row& reference = find_cpu_row("reference")->draw;
  for (size_t n : sizes) {
    auto logits = some_logits(n);
    auto expected = everything(reference, logits);
    for (const cpu_row* row : cpu_rows()) {
      if (!runs_here(*row)) continue;
      EXPECT_TRUE(everything(row->draw, logits) == expected) << row->name << n;
    }
    auto other = logits;
    other[n / 2] = 2;
    EXPECT_FALSE(everything(reference, other) == expected) << "the control";
  }
}

TEST(DrawRow, KeysNearANumberAreDistances) {
  auto logits = some_logits(1000);
  for (const cpu_row* row : cpu_rows()) {
    if (!runs_here(*row)) continue;
    auto a = weighed(row->draw, logits, 1);
    const float to = -2.5f, low = -1.5f, high = -0.5f;
    std::vector<uint32_t> expected;
    double weight = 0;
    size_t count = 0;
    for (uint32_t i = 0; i < a.x.size(); ++i) {
      float key = -std::fabs(a.x[i] - to);
      if (key >= low && key < high) expected.push_back(i);
      if (key >= low) weight += double(a.w[i]), ++count;
    }
    std::vector<uint32_t> found(a.x.size());
    found.resize(row->draw.find_near(a.x.data(), to, a.sums.size(), low, high, found.data()));
    EXPECT_EQ(found, expected);
    draw_masses masses;
    row->draw.mass_from(a.x.data(), to, a.w.data(), a.sums.size(), {low, high, low}, masses);
    EXPECT_EQ(masses[0].count, count);
    EXPECT_NEAR(masses[0].weight / weight, 1, 1e-6);
    row->draw.drop_far(a.x.data(), to, a.sums.size(), low, a.w.data(), a.sums.data());
    for (size_t i = 0; i < a.x.size(); ++i)
      EXPECT_EQ(a.w[i] > 0, -std::fabs(a.x[i] - to) >= low && a.x[i] > -87.3f);
  }
}

TEST(DrawRow, WeighsWhereTheLogitsAre) {
  for (const cpu_row* row : cpu_rows()) {
    if (!runs_here(*row)) continue;
    for (size_t n : sizes) {
      auto logits = some_logits(n);
      auto expected = weighed(row->draw, logits, 0.7f), a = expected;
      std::ranges::copy(logits, a.x.begin());
      row->draw.weigh(a.x.data(), n, largest_of_all(logits), 0.7f, a.x.data(), a.w.data(),
                      a.sums.data());
      EXPECT_TRUE(a == expected) << row->name << n;
    }
  }
}

/// How many keys a cut looks at until at most so few are in question.
size_t looked_at(float of_goal, float spread) {
  auto x = normal_floats(128'256, 3, spread);
  std::ranges::sort(x);
  for (float& v : x) v = std::max(v - x.back(), draw_x_least);
  auto at = [&](float key) {
    size_t n = size_t(x.end() - std::ranges::lower_bound(x, key));
    return draw_mass{double(n), n};
  };
  size_t looks = 0;
  draw_cut c{.from_low = at(draw_below_all)};
  for (; c.goes_on(); ++looks) {
    EXPECT_TRUE(c.low < c.middle() && c.middle() < c.high);
    c.take(c.middle(), at(c.middle()), {.weight = double(of_goal)});
  }
  EXPECT_TRUE(c.from_low.weight >= double(of_goal) && c.from_high.weight < double(of_goal));
  return looks;
}

TEST(DrawCut, ComesToAFewWhereverTheGoalIs) {
  for (float spread : {0.01f, 0.3f, 2.f, 10.f})
    for (float goal : {1.f, 30.f, 1000.f, 100'000.f, 128'256.f})
      EXPECT_LE(looked_at(goal, spread), 27) << goal << ", " << spread;
}

TEST(DrawRow, WeighsAsTheDefinitionSays) {
  for (size_t n : sizes) {
    auto logits = some_logits(n);
    double most = double(largest_of_all(logits)), sum = 0;
    auto a = weighed(best_cpu_row().draw, logits, 0.7f);
    for (size_t i = 0; i < a.x.size(); ++i) {
      double logit = i < n ? double(logits[i]) : -infinity;
      double x = std::isnan(logit) ? -infinity : (logit - most) / double(0.7f);
      if (x < -87.4) {
        EXPECT_EQ(a.w[i], 0);
        EXPECT_EQ(a.x[i], std::max(float(x), -88.f)) << i;
      } else {
        ASSERT_NEAR(a.x[i], x, 1e-5);
        ASSERT_NEAR(a.w[i] / std::exp(x), 1, 1e-5) << x;
        sum += std::exp(x);
      }
    }
    double sums = 0;
    for (float s : a.sums) sums += double(s);
    EXPECT_NEAR(sums / sum, 1, 1e-6);
  }
}

TEST(DrawRow, TheLargestOfABlockIsNoNan) {
  for (const cpu_row* row : cpu_rows()) {
    if (!runs_here(*row)) continue;
    for (size_t n : sizes) {
      auto logits = some_logits(n);
      if (n > 300) std::fill_n(logits.begin(), 256, nan);
      std::vector<float> maxima(draw_blocks(n)), expected(draw_blocks(n), -infinity);
      row->draw.maxima(logits.data(), n, maxima.data());
      for (size_t i = 0; i < n; ++i) {
        float& most = expected[i / draw_block];
        most = logits[i] > most ? logits[i] : most;
      }
      EXPECT_EQ(maxima, expected) << row->name << n;
    }
  }
}

TEST(DrawRow, EqualInfinitiesAreEqualAndWhatFillsABlockWeighsNothing) {
  for (const cpu_row* row : cpu_rows()) {
    if (!runs_here(*row)) continue;
    auto none = weighed(row->draw, {-infinity, nan, -infinity}, 1);
    EXPECT_EQ(none.sums[0], 3);
    EXPECT_EQ(none.w[3], 0);
    auto one = weighed(row->draw, {5, infinity, nan, -infinity}, 1);
    EXPECT_EQ(one.sums[0], 1);
    EXPECT_EQ(one.w[1], 1);
    auto cold = weighed(row->draw, {1, 1.0000001f, 0.9f}, 1e-30f);
    EXPECT_EQ(cold.sums[0], 1);
  }
}

/// 1 / 1e-40 is infinite, and infinity times nothing is no number.
TEST(DrawRow, EqualsAreEqualAtATemperatureWhoseInverseIsInfinite) {
  for (const cpu_row* row : cpu_rows()) {
    if (!runs_here(*row)) continue;
    auto a = weighed(row->draw, {5, 4, nan, 5, -infinity}, 1e-40f);
    EXPECT_EQ(std::vector(a.w.begin(), a.w.begin() + 5), (std::vector<float>{1, 0, 0, 1, 0}));
    EXPECT_EQ(a.sums[0], 2);
  }
}

TEST(DrawRow, FindsCountsAndDropsByTheBoundsAsGiven) {
  auto logits = some_logits(1000);
  for (const cpu_row* row : cpu_rows()) {
    if (!runs_here(*row)) continue;
    auto a = weighed(row->draw, logits, 1);
    float low = a.x[100], high = a.x[200];
    if (low > high) std::swap(low, high);
    std::vector<uint32_t> expected;
    draw_keys bars = {low, high, draw_x_least};
    const float bar = std::exp(high);
    draw_masses above{};
    for (uint32_t i = 0; i < a.x.size(); ++i) {
      if (a.x[i] >= low && a.x[i] < high) expected.push_back(i);
      for (size_t k = 0; k < draw_at_once; ++k)
        if (a.x[i] >= bars[k]) above[k].weight += double(a.w[i]), ++above[k].count;
    }
    std::vector<uint32_t> found(a.x.size());
    found.resize(row->draw.find(a.x.data(), a.sums.size(), low, high, found.data()));
    EXPECT_EQ(found, expected);
    draw_masses masses;
    row->draw.mass_from(a.x.data(), 0, a.w.data(), a.sums.size(), bars, masses);
    for (size_t k = 0; k < draw_at_once; ++k) {
      EXPECT_EQ(masses[k].count, above[k].count);
      EXPECT_NEAR(masses[k].weight / above[k].weight, 1, 1e-6);
    }
    row->draw.drop_far(a.x.data(), 0, a.sums.size(), low, a.w.data(), a.sums.data());
    double left = 0;
    for (size_t i = 0; i < a.x.size(); ++i) EXPECT_EQ(a.w[i] > 0, a.x[i] >= low && a.x[i] > -87.3f);
    for (float s : a.sums) left += double(s);
    EXPECT_EQ(left, masses[0].weight) << "sums of the same numbers in the same order";
    auto heavy = a.w;
    for (float& w : heavy) w = w < bar ? 0 : w;
    row->draw.drop_light(a.sums.size(), bar, a.w.data(), a.sums.data());
    EXPECT_EQ(a.w, heavy);
    EXPECT_TRUE(std::ranges::any_of(heavy, [](float w) { return w > 0; })) << "the control";
  }
}

}  // namespace
}  // namespace lethe
