#include <gtest/gtest.h>

#include "kernels/cpu_row.hpp"
#include "tests/unit/kernels_matmul_formats.hpp"
#include "tests/unit/kernels_matmul_input.hpp"
#include "tests/unit/kernels_matmul_run.hpp"
#include "tests/unit/kernels_rows_here.hpp"

namespace lethe {
namespace {

using formats::tensor;

const cpu_row& reference_row() { return *cpu_rows()[0]; }

std::vector<const cpu_row*> rows_to_test() { return rows_here({&vnni_emulated, &amx_emulated}); }

std::vector<uint32_t> widths(dtype t) {
  switch (block_elements(t)) {
    case 1:
      return {1, 7, 31, 32, 257, 4096};
    case 32:
      return {32, 64, 96, 288, 1024, 4096};
    default:
      return {256, 512, 768, 2304, 4096};
  }
}

class Matmul : public testing::TestWithParam<dtype> {
 protected:
  dtype type = GetParam();
  formats::random random{11};
  /// Ten blocks or more, so that segments differ in length.
  uint32_t some_width = block_elements(type) == 1 ? 333 : 11 * block_elements(type);
};

TEST_P(Matmul, EveryInstructionSetGivesTheReferenceBits) {
  std::vector<const cpu_row*> rows = rows_to_test();
  const uint32_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33};
  uint32_t turn = 0;
  for (uint32_t k : widths(type)) {
    for (uint32_t n : {1u, 7u, 15u, 16u, 17u, 33u, 81u}) {
      uint32_t m = counts[turn++ % std::size(counts)];
      tensor w(type, n, k, random);
      input x = random_input(m, k, random);
      std::vector<float> want = multiply(reference_row(), w, x);
      for (const cpu_row* row : rows) {
        ASSERT_TRUE(same_bits(multiply(*row, w, x), want))
            << row->name << " " << name_of(type) << " n " << n << " k " << k << " m " << m;
      }
    }
  }
}

TEST_P(Matmul, ManyRowsGiveTheSameBitsAsOne) {
  tensor w(type, 70, some_width, random);
  input x = random_input(67, some_width, random);
  for (const cpu_row* row : rows_to_test()) expect_rows_alone(*row, w, x);
}

/// The most rows that go straight from memory are 12 (f32), 16 (quantized, AVX2) and 24 (16 bits;
/// quantized, AVX-VNNI), that take few units at once 24, of a block 132; segments are longer than
/// what is taken at once. In AMX's tiles go 9 and more, of 8 bits 19, and 128 a block; with 34 the
/// last tile is lower.
TEST_P(Matmul, BlocksAtTheirLimitsGiveTheSameBitsAsOne) {
  tensor w(type, 80, 2304, random);
  for (uint32_t m : {6u, 7u, 8u, 9u, 12u, 13u, 16u, 17u, 18u, 19u, 23u, 24u, 25u, 34u, 128u, 129u,
                     131u, 132u, 133u}) {
    input x = random_input(m, 2304, random);
    for (const cpu_row* row : rows_to_test()) expect_rows_alone(*row, w, x);
  }
}

/// 241 rows are tiles of 16 but for the last, which has one; 18 panels are more than stay near.
TEST_P(Matmul, ALowTileReadsNoFurtherThanItMay) {
  if (is_float(type)) return;
  tensor w(type, 18 * 16, some_width, random);
  input x = random_input(241, some_width, random);
  std::vector<float> want = multiply(reference_row(), w, x), got(want.size());
  for (const cpu_row* row : rows_to_test()) {
    activations seen = x.view(*row);
    before_the_end all(row->x_tile_rows == input::tall_rows ? x.tall : x.units);
    seen.units = all.units();
    row->matmul(w.panels, {0, w.rows, 0, segments}, seen, got.data(), w.rows);
    ASSERT_TRUE(same_bits(got, want)) << row->name;
  }
}

TEST_P(Matmul, AnyRangeOfOutputsIsThatRange) {
  tensor w(type, 77, some_width, random);
  const std::pair<uint32_t, uint32_t> ranges[] = {{0, 5},   {3, 4},   {5, 16},  {9, 40}, {16, 77},
                                                  {31, 65}, {64, 77}, {76, 77}, {20, 20}};
  for (uint32_t rows : {3u, 12u, 40u}) {
    input x = random_input(rows, some_width, random);
    for (const cpu_row* row : rows_to_test()) {
      std::vector<float> all = multiply(*row, w, x);
      for (auto [begin, end] : ranges) {
        std::vector<float> part = multiply(*row, w, x, {begin, end, 0, segments});
        const uint32_t width = end - begin;
        for (uint32_t m = 0; m < rows && width > 0; m++) {
          ASSERT_EQ(0, std::memcmp(&part[m * width], &all[m * w.rows + begin], 4 * width))
              << row->name << " [" << begin << ", " << end << ") of row " << m << " of " << rows;
        }
      }
    }
  }
}

/// A panel alone is no stream of several, so it says where each output belongs.
TEST_P(Matmul, StreamsOfManyPanelsGiveEachPanelItsOutputs) {
  tensor w(type, 236, some_width, random);  // each of four streams has three panels, three are left
  for (uint32_t m : {1u, 3u, 8u, 9u, 16u, 20u}) {
    input x = random_input(m, some_width, random);
    for (const cpu_row* row : rows_to_test()) {
      for (uint32_t begin : {0u, 9u}) {
        std::vector<float> all = multiply(*row, w, x, {begin, w.rows, 0, segments});
        const uint32_t width = w.rows - begin;
        for (uint32_t n = begin, end; n < w.rows; n = end) {
          end = std::min(n / panel_rows * panel_rows + panel_rows, w.rows);
          std::vector<float> one = multiply(*row, w, x, {n, end, 0, segments});
          for (uint32_t i = 0; i < m; i++) {
            ASSERT_EQ(0,
                      std::memcmp(&one[i * (end - n)], &all[i * width + n - begin], 4 * (end - n)))
                << row->name << " from " << begin << ", outputs " << n << ", row " << i;
          }
        }
      }
    }
  }
}

TEST_P(Matmul, CuttingKAndAddingAsATreeIsExact) {
  for (uint32_t k : {some_width, 3 * block_elements(type), 2048u}) {
    tensor w(type, 33, k, random);
    for (uint32_t m : {1u, 9u, 40u}) {
      input x = random_input(m, k, random);
      for (const cpu_row* row : rows_to_test()) {
        std::vector<float> whole = multiply(*row, w, x);
        for (uint32_t parts : {2u, 4u, 8u}) {
          ASSERT_TRUE(same_bits(joined(*row, w, x, 0, segments, segments / parts), whole))
              << row->name << " k " << k << " m " << m << " in " << parts;
        }
      }
    }
  }
}

TEST_P(Matmul, JoinsWhateverSegmentsItIsGiven) {
  tensor w(type, 5, some_width, random);
  input x = random_input(2, some_width, random);
  auto part = [&](uint32_t a, uint32_t b) {
    uint32_t begin = segment_begin(type, w.cols, a), end = segment_begin(type, w.cols, b);
    return multiply(reference_row(), w, cut(x, begin, end, 0, 2), {0, 5, a, b});
  };
  std::vector<float> got = part(2, 7), two = part(2, 4), four = part(4, 6), six = part(6, 7);
  for (size_t i = 0; i < got.size(); i++) EXPECT_EQ(got[i], two[i] + (four[i] + six[i]));
}

/// One value of x as the product sees it.
double seen(const input& x, dtype t, uint32_t m, uint32_t k) {
  if (is_float(t)) return x.f[m * x.cols + k];
  return double(x.plain.scales[m * (x.cols / 32) + k / 32]) * x.plain.q[m * x.cols + k];
}

TEST_P(Matmul, IsTheProductOfTheNumbersInTheFile) {
  for (uint32_t k : widths(type)) {
    tensor w(type, 18, k, random);
    input x = random_input(3, k, random);
    std::vector<float> got = multiply(reference_row(), w, x);
    // Each float operation of a segment and of the tree loses at most 2^-24 of the terms' size.
    double operations = is_float(type) ? k / 8.0 + 5 : 5 * (k / 256.0 + 2);
    for (uint32_t n = 0; n < w.rows; n++) {
      formats::weights row = w.meaning(n);
      for (uint32_t m = 0; m < x.rows; m++) {
        double sum = 0, size = 0;
        for (uint32_t i = 0; i < k; i++) {
          double v = seen(x, type, m, i);
          sum += row.value[i] * v;
          size += row.size[i] * std::abs(v);
        }
        ASSERT_NEAR(got[m * w.rows + n], sum, size * operations * 0x1p-24)
            << name_of(type) << " k " << k << " n " << n << " m " << m;
      }
    }
  }
}

TEST_P(Matmul, TakesTheLargestNumbers) {
  // All bits of the file's numbers set or none, x at its largest: sums must not overflow.
  for (int pattern : {0x00, 0xff, 0x80, 0x7f}) {
    for (float sign : {1.0f, -1.0f}) {
      tensor w(type, 16, block_elements(type) == 1 ? 32 : block_elements(type), random);
      if (is_float(type)) return;
      uint32_t skip = type == dtype::q6_k ? 0 : block_bytes(type) - block_elements(type) / 2;
      if (type == dtype::q8_0) skip = 2;
      uint32_t end = type == dtype::q6_k ? 208 : block_bytes(type);
      for (uint32_t r = 0; r < 16; r++) {
        uint8_t* row = const_cast<uint8_t*>(w.row(r));
        std::fill(row + skip, row + end, uint8_t(pattern));
      }
      repack_panels(type, 16, w.cols, 0, 1, tensor::row_of, &w,
                    const_cast<std::byte*>(w.panels.panels));
      for (uint32_t m : {1u, 6u, 12u, 20u}) {
        input x(m, w.cols, w.cols, std::vector<float>(m * w.cols, sign));
        std::vector<float> want = multiply(reference_row(), w, x);
        for (const cpu_row* row : rows_to_test()) {
          EXPECT_EQ(multiply(*row, w, x), want) << row->name << " " << pattern << " " << sign;
        }
        double sum = 0;
        for (uint32_t i = 0; i < w.cols; i++) sum += w.meaning(3).value[i] * seen(x, type, 0, i);
        EXPECT_NEAR(want[3], sum, std::abs(sum) * 1e-5 + 1e-3);
      }
    }
  }
}

/// A segment of Q8_0: each unit's integer sum times the weights' scale, rounded once, then a fused
/// multiply-add of that times x's.
float q8_segment(const tensor& w, const input& x, uint32_t n, uint32_t m, uint32_t segment) {
  constexpr uint32_t block = 34;
  float sum = 0;
  uint32_t u = segment_begin(w.type, w.cols, segment) / 32;
  for (; u < segment_begin(w.type, w.cols, segment + 1) / 32; u++) {
    const uint8_t* unit = w.row(n) + size_t{u} * block;
    const int8_t* q = &x.plain.q[size_t{m} * x.cols + u * 32];
    int32_t dot = 0;
    for (uint32_t i = 0; i < 32; i++) dot += int8_t(unit[2 + i]) * q[i];
    sum = std::fma(float(dot) * formats::f16_at(unit), x.plain.scales[m * (x.cols / 32) + u], sum);
  }
  return sum;
}

/// Scales are by turns those of the test's formats and the largest and smallest halves there are.
TEST(QuantMatmul, IsWhatItsDefinitionSays) {
  formats::random random{23};
  const uint32_t halves[] = {0x7bff, 0xfbff, 0x0001, 0x8001, 0x03ff, 0x0000, 0x8000};
  tensor w(dtype::q8_0, 50, 512, random);
  for (uint32_t n = 0; n < w.rows; n += 2) {
    for (uint32_t u = 0; u < w.cols / 32; u++)
      formats::put_u16(const_cast<uint8_t*>(w.row(n)) + u * 34, halves[(n / 2 + u) % 7]);
  }
  repack_panels(w.type, w.rows, w.cols, 0, (w.rows + panel_rows - 1) / panel_rows, tensor::row_of,
                &w, const_cast<std::byte*>(w.panels.panels));
  for (uint32_t m : {1u, 4u, 12u, 20u, 40u}) {
    input x = random_input(m, w.cols, random);
    for (uint32_t k = 0; k < w.cols; k++) x.f[k] = k % 3 ? 1e30f : -1e30f;
    x = input(m, w.cols, w.cols, x.f);
    std::vector<float> want;
    for (uint32_t r = 0; r < m; r++) {
      for (uint32_t n = 0; n < w.rows; n++) {
        float s[segments];
        for (uint32_t i = 0; i < segments; i++) s[i] = q8_segment(w, x, n, r, i);
        want.push_back(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])));
      }
    }
    for (const cpu_row* row : rows_to_test())
      EXPECT_TRUE(same_bits(multiply(*row, w, x), want)) << row->name << " " << m;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Matmul, testing::ValuesIn(formats::all_types),
                         [](const auto& p) { return name_of(p.param); });

}  // namespace
}  // namespace lethe
