#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/unit/kernels_matmul_input.hpp"
#include "tests/unit/kernels_rows_here.hpp"

namespace lethe {
namespace {

plain_rows run(const cpu_row& row, const std::vector<float>& x, uint32_t m, uint32_t cols) {
  return {row, quantized_by(row, x, m, cols, x.size() / m), m, cols};
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

std::vector<float> random_rows(uint32_t m, uint32_t stride) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(m * stride);
  for (float& v : x) v = normal(random) * std::ldexp(1.0f, int(random() % 40) - 20);
  return x;
}

TEST(Quantize, IsWithinHalfAStep) {
  std::vector<float> x = random_rows(3, 100);
  plain_rows got = run(*cpu_rows()[0], x, 3, 96);
  for (uint32_t r = 0; r < 3; r++) {
    for (uint32_t c = 0; c < 96; c++) {
      float scale = got.scales[r * 3 + c / 32];
      EXPECT_NEAR(x[r * 100 + c], scale * float(got.q[r * 96 + c]), scale * 0.50001f);
    }
  }
}

TEST(Quantize, SumsHalfBlocksAndReaches127) {
  plain_rows got = run(*cpu_rows()[0], random_rows(2, 64), 2, 64);
  for (uint32_t h = 0; h < 8; h++) {
    int sum = 0;
    for (uint32_t i = 0; i < 16; i++) sum += got.q[h * 16 + i];
    EXPECT_EQ(sum, got.sums[h]);
  }
  for (uint32_t b = 0; b < 4; b++) {
    int largest = 0;
    for (uint32_t i = 0; i < 32; i++) largest = std::max(largest, std::abs(got.q[b * 32 + i]));
    EXPECT_EQ(largest, 127);
  }
}

TEST(Quantize, RoundsTiesToEven) {
  std::vector<float> x(32);
  x[0] = 127, x[1] = 0.5f, x[2] = 1.5f, x[3] = 2.5f, x[4] = -0.5f, x[5] = -1.5f;
  plain_rows got = run(*cpu_rows()[0], x, 1, 32);
  EXPECT_EQ(got.scales[0], 1.0f);
  EXPECT_EQ(std::vector<int8_t>(got.q.begin(), got.q.begin() + 6),
            (std::vector<int8_t>{127, 0, 2, 2, 0, -2}));
}

TEST(Quantize, TakesZerosAndDenormalsAsZero) {
  std::vector<float> x(64, 1e-42f);
  for (uint32_t i = 32; i < 64; i++) x[i] = i % 2 ? 0.0f : -0.0f;
  for (const cpu_row* row : cpu_rows()) {
    if (!runs_here(*row)) continue;
    plain_rows got = run(*row, x, 1, 64);
    EXPECT_EQ(got.scales, std::vector<float>(2, 0.0f));
    EXPECT_EQ(got.q, std::vector<int8_t>(64, 0));
  }
}

TEST(Quantize, MarksBlocksThatAreNotFinite) {
  for (float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
    std::vector<float> x(96, 1.0f);
    x[37] = bad;
    for (const cpu_row* row : cpu_rows()) {
      if (!runs_here(*row)) continue;
      plain_rows got = run(*row, x, 1, 96);
      EXPECT_EQ(got.scales[0], 1 / 127.0f);
      EXPECT_EQ(got.scales[1], INFINITY);
      EXPECT_EQ(std::vector<int8_t>(got.q.begin() + 32, got.q.begin() + 64),
                std::vector<int8_t>(32, 0));
      EXPECT_EQ(got.scales[2], 1 / 127.0f);
    }
  }
}

TEST(Quantize, EveryInstructionSetGivesTheSameBits) {
  std::vector<float> x = random_rows(33, 4100);
  std::vector<x_unit> want = quantized_by(*cpu_rows()[0], x, 33, 4096, 4100);
  for (const cpu_row* row : rows_here({&amx_emulated})) {
    std::vector<x_unit> got = quantized_by(*row, x, 33, 4096, 4100);
    EXPECT_TRUE(same_bits(got, laid_in_tiles(want, 33, 4096, row->x_tile_rows))) << row->name;
  }
}

TEST(Quantize, LeavesWhatProductsAddUpBesides) {
  for (const x_unit& unit : quantized_by(*cpu_rows()[0], random_rows(7, 96), 7, 96, 96)) {
    EXPECT_EQ(unit.scaled_sum, unit.scale * float(unit.sums[0] + unit.sums[1]));
    int32_t sum = unit.sums[0] + unit.sums[1];
    EXPECT_EQ(start_for<128>(unit), product_start - 128 * sum);
    EXPECT_EQ(start_for<16>(unit), product_start - 16 * sum);
    EXPECT_EQ(start_for<8>(unit), product_start - 8 * sum);
    EXPECT_EQ(start_for<0>(unit), product_start);
  }
}

/// In tiles of neighbouring rows, unit after unit; few rows are one tile.
class PlacesOfUnits : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Tiles, PlacesOfUnits, testing::Values(x_tile_rows, 16u));

TEST_P(PlacesOfUnits, AreEachItsOwnBesideItsTile) {
  for (uint32_t rows = 1; rows <= 40; rows++) {
    x_layout layout = layout_of_x(rows, 5, GetParam());
    EXPECT_LE(layout.tile, rows <= x_few_rows ? rows : GetParam());
    EXPECT_EQ(layout.tile == rows, rows <= std::max(x_few_rows, GetParam()));
    std::vector<bool> taken(rows * 5);
    for (uint32_t r = 0; r < rows; r++) {
      for (uint32_t u = 0; u < 5; u++) {
        size_t at = place_of_unit(layout, r, u);
        ASSERT_LT(at, taken.size()) << rows;
        EXPECT_FALSE(taken[at]) << rows;
        taken[at] = true;
        uint32_t first = r / layout.tile * layout.tile;
        EXPECT_EQ(at, place_of_unit(layout, first, u) + (r - first)) << rows;
      }
    }
  }
}

/// Threads quantize parts of the same rows: where a part begins and ends changes nothing.
TEST(Quantize, PartsAreTheWhole) {
  std::vector<float> x = random_rows(33, 160);
  for (const cpu_row* row : rows_here({&amx_emulated})) {
    std::vector<x_unit> want = quantized_by(*row, x, 33, 160, 160), got(want.size());
    size_t ends[] = {32, 160, 352, 1216, 1440, 5280}, begin = 0;
    for (size_t end : ends) {
      row->quantize(x.data(), 33, 160, begin, end, got.data());
      begin = end;
    }
    EXPECT_TRUE(same_bits(got, want)) << row->name;
  }
}

}  // namespace
}  // namespace lethe
