#include "runtime/log/draw.hpp"

#include "tests/unit/log_samples.hpp"

namespace lethe {
namespace {

using namespace test;

/// Repeats itself by its seed.
randomness seeded(uint64_t seed) {
  return [random = std::mt19937_64(seed)](std::span<std::byte> to) mutable {
    for (std::byte& b : to) b = std::byte(uint8_t(random() >> 24));
  };
}

roster with_capacities(const std::vector<uint32_t>& capacities) {
  roster r;
  for (uint32_t c : capacities) r.leaves.emplace_back().capacity = c;
  return r;
}

/// Pearson's statistic of counts against what the capacities promise.
double chi_square(const std::vector<uint64_t>& counts, const roster& r) {
  uint64_t draws = 0;
  for (uint64_t c : counts) draws += c;
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double due = double(draws) * r.leaves[i].capacity / double(r.capacity());
    sum += (double(counts[i]) - due) * (double(counts[i]) - due) / due;
  }
  return sum;
}

const std::vector<uint32_t> capacities = {1, 7, 100, 250, 99, 1000, 43, 500};
constexpr double limit = 24.3;  // of chi-square with 7 degrees of freedom: passed once in 1,000
constexpr uint32_t draws = 400'000;

std::vector<uint64_t> counts_of(const roster& r, uint32_t k, uint64_t seed) {
  std::vector<uint64_t> counts(r.leaves.size());
  auto random = seeded(seed);
  for (uint32_t i = 0; i < draws; i += k)
    for (uint32_t node : draw_nodes(r, k, random)) ++counts[node];
  return counts;
}

TEST(Draw, IsProportionalToCapacity) {
  const roster r = with_capacities(capacities);
  for (uint32_t k : {1, 2})
    for (uint64_t seed : {11, 12, 13}) EXPECT_LT(chi_square(counts_of(r, k, seed), r), limit);
}

/// The same test must notice draws that are only nearly right.
TEST(Draw, ABiasedDrawFailsTheSameTest) {
  const roster r = with_capacities(capacities);
  std::vector<uint64_t> modulo(capacities.size()), scheduler(capacities.size());
  auto random = seeded(11);
  for (uint32_t i = 0; i < draws; ++i) {
    std::array<std::byte, 2> two;  // a 16-bit number modulo the total: bias of a few per cent
    random(two);
    uint64_t at = load_le<uint16_t>(two.data()) % r.capacity();
    size_t node = 0;
    for (; at >= capacities[node]; ++node) at -= capacities[node];
    ++modulo[node];
    // A scheduler that sends one in 50 where it likes.
    ++scheduler[i % 50 == 0 ? 2 : draw_nodes(r, 1, random)[0]];
  }
  EXPECT_GT(chi_square(modulo, r), limit);
  EXPECT_GT(chi_square(scheduler, r), limit);
}

TEST(Draw, CandidatesAreIndependent) {
  const roster r = with_capacities({1, 1});
  auto random = seeded(5);
  uint64_t same = 0;
  for (int i = 0; i < 100'000; ++i) {
    auto two = draw_nodes(r, 2, random);
    same += two[0] == two[1];
  }
  EXPECT_NEAR(double(same), 50'000, 4.0 * std::sqrt(25'000.0));
}

TEST(Draw, ThrowsAwayWhatDoesNotFit) {
  std::vector<uint64_t> values = {7, 6, 5, 3};  // 8 possible values, 5 of them good
  size_t next = 0;
  auto told = [&](std::span<std::byte> to) {
    ASSERT_EQ(to.size(), 8u);
    std::memcpy(to.data(), &values[next++], 8);
  };
  EXPECT_EQ(uniform_below(5, told), 3u);
  EXPECT_EQ(next, 4u);
  values = {UINT64_MAX}, next = 0;
  EXPECT_EQ(uniform_below(1, told), 0u);
  next = 0;
  EXPECT_EQ(uniform_below(uint64_t{1} << 32, told), UINT32_MAX);
}

TEST(Draw, ReachesEveryNodeAndNoOther) {
  const roster r = with_capacities({2, 1, 3});
  std::vector<uint32_t> drawn;
  for (uint64_t value = 0; value < 6; ++value)
    drawn.push_back(
        draw_nodes(r, 1, [&](std::span<std::byte> to) { std::memcpy(to.data(), &value, 8); })[0]);
  EXPECT_EQ(drawn, (std::vector<uint32_t>{0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(draw_nodes(r, 3).size(), 3u);
}

using DrawDeathTest = testing::Test;

TEST(DrawDeathTest, ABrokenSourceEndsTheProcess) {
  auto ones = [](std::span<std::byte> to) { std::ranges::fill(to, std::byte{0xff}); };
  EXPECT_DEATH(uniform_below(5, ones), "");
  EXPECT_DEATH(draw_nodes(roster{}, 1, ones), "");
}

}  // namespace
}  // namespace lethe
