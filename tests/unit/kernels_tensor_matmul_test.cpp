#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/kernels_defined_sums.hpp"
#include "tests/unit/kernels_matmul_run.hpp"

// Products of the arithmetics that round, on cores: their definitions' bits, whatever else is
// multiplied.

namespace lethe {
namespace {

float weight(const tensor& w, uint32_t row, uint32_t k) {
  uint16_t bits;
  std::memcpy(&bits, w.row(row) + 2 * k, 2);
  return float_of(bits);
}

/// Of K; joined with others denormals may stay.
float segment_sum(rounding how, const tensor& w, const input& x, uint32_t n, uint32_t m,
                  uint32_t segment) {
  const defined_sums by{how};
  uint32_t begin = segment_begin(w.type, w.cols, segment);
  return by.with_products(
      0, segment_begin(w.type, w.cols, segment + 1) - begin,
      [&](uint32_t i) { return by.flushed(weight(w, n, begin + i)); },
      [&](uint32_t i) { return to_bf16(x.f[m * x.stride + begin + i]); });
}

std::vector<float> by_definition(rounding how, const tensor& w, const input& x) {
  std::vector<float> y;
  for (uint32_t m = 0; m < x.rows; m++) {
    for (uint32_t n = 0; n < w.rows; n++) {
      float s[segments];
      for (uint32_t i = 0; i < segments; i++) s[i] = segment_sum(how, w, x, n, m, i);
      y.push_back(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])));
    }
  }
  return y;
}

formats::random random_of_tests{17};

class TensorMatmul : public testing::TestWithParam<rounding> {
 protected:
  void SetUp() override {
    if (rows.empty()) GTEST_SKIP() << "no AVX-512, which emulations are made of";
  }
  const std::vector<const cpu_row*> rows = rounding_rows_here(GetParam());
};
INSTANTIATE_TEST_SUITE_P(By, TensorMatmul, testing::Values(rounding::tensor, rounding::pairs),
                         [](const auto& of) { return name_of(of.param); });

/// By tiles rows go vector by vector up to six, in tiles of sixteen from seven on, in blocks of
/// 128; by pairs in tiles of up to twelve along weights where they lie up to 24, in blocks of 132.
TEST_P(TensorMatmul, IsWhatItsDefinitionSays) {
  const uint32_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 24, 25, 31, 33, 50};
  uint32_t turn = 0;
  for (uint32_t k : {256u, 512u, 1280u, 2304u}) {
    for (uint32_t n : {1u, 7u, 16u, 17u, 33u, 64u, 81u}) {
      tensor w(dtype::bf16, n, k, random_of_tests);
      input x = random_input(counts[turn++ % std::size(counts)], k, random_of_tests);
      std::vector<float> want = by_definition(GetParam(), w, x);
      for (const cpu_row* row : rows)
        ASSERT_TRUE(same_bits(multiply(*row, w, x), want))
            << row->name << " n " << n << " k " << k << " m " << x.rows;
    }
  }
}

/// The exact rows have other bits: x is rounded, and sums have another order.
TEST_P(TensorMatmul, IsAnotherArithmetic) {
  tensor w(dtype::bf16, 32, 512, random_of_tests);
  input x = random_input(4, 512, random_of_tests);
  std::vector<float> exact = multiply(best_cpu_row(), w, x);
  for (const cpu_row* row : rows) EXPECT_FALSE(same_bits(multiply(*row, w, x), exact)) << row->name;
}

TEST_P(TensorMatmul, StaysWithinTheRoundingOfBfloat16) {
  for (uint32_t m : {1u, 40u}) {
    tensor w(dtype::bf16, 48, 2048, random_of_tests);
    input x = random_input(m, 2048, random_of_tests);
    for (const cpu_row* row : rows) {
      std::vector<float> got = multiply(*row, w, x);
      for (uint32_t n = 0; n < w.rows; n++) {
        for (uint32_t r = 0; r < m; r++) {
          double sum = 0, size = 0;
          for (uint32_t k = 0; k < w.cols; k++) {
            double term = double(weight(w, n, k)) * x.f[r * w.cols + k];
            sum += term, size += std::abs(term);
          }
          ASSERT_NEAR(got[r * w.rows + n], sum, size * 0x1p-8) << row->name;
        }
      }
    }
  }
}

TEST_P(TensorMatmul, ManyRowsGiveTheSameBitsAsOne) {
  tensor w(dtype::bf16, 80, 2304, random_of_tests);
  for (uint32_t m : {5u, 6u, 7u, 16u, 17u, 32u, 33u, 48u, 49u, 127u, 128u, 129u, 160u, 300u}) {
    input x = random_input(m, 2304, random_of_tests);
    for (const cpu_row* row : rows) expect_rows_alone(*row, w, x);
  }
}

TEST_P(TensorMatmul, AnyRangeOfOutputsIsThatRange) {
  tensor w(dtype::bf16, 181, 512, random_of_tests);  // more panels than stay near, one not whole
  for (uint32_t m : {1u, 6u, 40u}) {
    input x = random_input(m, 512, random_of_tests);
    for (const cpu_row* row : rows) {
      std::vector<float> all = multiply(*row, w, x);
      for (auto [begin, end] : {std::pair(0u, 5u), {3u, 4u}, {9u, 40u}, {16u, 77u}, {30u, 181u}}) {
        std::vector<float> part = multiply(*row, w, x, {begin, end, 0, segments});
        const uint32_t width = end - begin;
        for (uint32_t r = 0; r < m; r++)
          ASSERT_EQ(0, std::memcmp(&part[r * width], &all[r * w.rows + begin], 4 * width))
              << row->name << " [" << begin << ", " << end << ") of row " << r << " of " << m;
      }
    }
  }
}

TEST_P(TensorMatmul, CuttingKAndAddingAsATreeIsExact) {
  for (uint32_t k : {256u, 1280u, 2048u}) {
    tensor w(dtype::bf16, 33, k, random_of_tests);
    for (uint32_t m : {1u, 9u, 40u}) {
      input x = random_input(m, k, random_of_tests);
      for (const cpu_row* row : rows) {
        std::vector<float> whole = multiply(*row, w, x);
        for (uint32_t parts : {2u, 4u, 8u})
          ASSERT_TRUE(same_bits(joined(*row, w, x, 0, segments, segments / parts), whole))
              << row->name << " k " << k << " m " << m << " in " << parts;
      }
    }
  }
}

/// Segments that are no whole units, and all other types, are multiplied exactly.
TEST_P(TensorMatmul, LeavesTheRestExact) {
  for (auto [type, k] : {std::pair(dtype::bf16, 288u),
                         {dtype::bf16, 333u},
                         {dtype::f32, 512u},
                         {dtype::f16, 512u},
                         {dtype::q8_0, 512u},
                         {dtype::q4_k, 512u}}) {
    tensor w(type, 40, k, random_of_tests);
    for (uint32_t m : {1u, 40u}) {
      input x = random_input(m, k, random_of_tests);
      std::vector<float> want = multiply(reference, w, x);
      for (const cpu_row* row : rows)
        EXPECT_TRUE(same_bits(multiply(*row, w, x), want)) << row->name << " " << name_of(type);
    }
  }
}

/// Columns whose products, or sums of them, are too small for a float that isn't denormal; numbers
/// that are denormal, infinite or none. Three rows go vector by vector, 20 in AMX's tiles, 30 in
/// blocks.
TEST_P(TensorMatmul, TakesNumbersAtTheEndsOfTheirRange) {
  for (uint32_t m : {3u, 20u, 30u}) {
    tensor w(dtype::bf16, 32, 512, random_of_tests);
    auto* numbers = reinterpret_cast<uint16_t*>(const_cast<uint8_t*>(w.row(0)));
    std::normal_distribution<float> normal;
    for (uint32_t i = 0; i < w.rows * w.cols; i++) {
      float f = std::ldexp(normal(random_of_tests), -int(4 * (i / w.cols) + i % 8));
      numbers[i] = uint16_t(std::bit_cast<uint32_t>(f) >> 16);
    }
    for (uint32_t i = 0; i < w.cols; i++) numbers[5 * w.cols + i] = uint16_t(i % 128);
    repack_panels(w.type, w.rows, w.cols, 0, w.rows / panel_rows, tensor::row_of, &w,
                  const_cast<std::byte*>(w.panels.panels));
    input plain = random_input(m, w.cols, random_of_tests);
    std::vector<float> f = plain.f;
    for (float& v : f) v = std::ldexp(v, -30);
    f[0] = 0x1p-126f * 0.999f, f[1] = -0x1p-149f;
    std::fill_n(f.begin() + w.cols, w.cols, 1.0f);
    input finite(m, w.cols, w.cols, f);
    f[w.cols + 7] = INFINITY, f[2 * w.cols + 9] = NAN;
    input x(m, w.cols, w.cols, f);
    std::vector<float> want = by_definition(GetParam(), w, x);
    size_t zeros = size_t(std::ranges::count(want, 0.0f)), small = 0;
    for (float y : want) small += std::abs(y) < 0x1p-120f && y != 0;
    EXPECT_GT(zeros, 0u);
    EXPECT_GT(small, 0u);
    for (const cpu_row* row : rows) {
      std::vector<float> got = multiply(*row, w, x);
      for (size_t i = 0; i < got.size(); i++)
        if (std::isnan(got[i]) && std::isnan(want[i])) got[i] = want[i];  // any NaN will do
      EXPECT_TRUE(same_bits(got, want)) << row->name << " " << m;
      EXPECT_TRUE(same_bits(joined(*row, w, finite, 0, 8, 2), multiply(*row, w, finite)))
          << row->name << " " << m;
      volatile float denormal = 0x1p-149f;
      EXPECT_EQ(denormal * 2, 0x1p-148f) << row->name << " leaves the thread another mode";
    }
  }
}

/// 241 rows are tiles of 16 but for the last, which has one; a rank's part of K.
TEST_P(TensorMatmul, ALowTileReadsNoFurtherThanItMay) {
  tensor w(dtype::bf16, 18 * 16, 512, random_of_tests);
  for (uint32_t m : {7u, 241u}) {
    input x = random_input(m, 256, random_of_tests);
    for (const cpu_row* row : rows) {
      std::vector<float> got(m * w.rows), want = multiply(*row, w, x, {0, w.rows, 4, 8});
      activations seen = x.view(*row);
      before_the_end all(x.rounded_for(*row));
      seen.rounded = all.units();
      row->matmul(w.panels, {0, w.rows, 4, 8}, seen, got.data(), w.rows);
      ASSERT_TRUE(same_bits(got, want)) << row->name;
    }
  }
}

TEST_P(TensorMatmul, RoundsRowsToTheirPlaces) {
  for (uint32_t m : {1u, 8u, 9u, 35u}) {
    input x = random_input(m, 96, random_of_tests);
    x.f[0] = NAN, x.f[1] = INFINITY, x.f[2] = -0x1p-130f, x.f[3] = 0x1p-126f, x.f[4] = 3.39e38f;
    x.f[5] = 1 + 0x1p-8f, x.f[6] = 1 + 3 * 0x1p-8f, x.f[7] = 3.4e38f;
    input again(m, 96, 96, x.f);
    for (const cpu_row* row : rows) {
      const std::vector<x_rounded>& want = again.rounded_for(*row);
      std::vector<x_rounded> got(want.size());
      // In pieces, as threads take them.
      for (size_t i = 0; i < x.f.size(); i += 64)
        row->round(x.f.data(), m, 96, i, std::min(i + 64, x.f.size()), got.data());
      EXPECT_EQ(0, std::memcmp(got.data(), want.data(), got.size() * sizeof got[0]))
          << row->name << " " << m;
    }
  }
}

}  // namespace
}  // namespace lethe
