#include <gtest/gtest.h>

#include "kernels/cpu_row.hpp"
#include "tests/unit/kernels_matmul_formats.hpp"

namespace lethe {
namespace {

using formats::tensor;

class Repack : public testing::TestWithParam<dtype> {};

TEST_P(Repack, LosesNothing) {
  dtype t = GetParam();
  formats::random random(7);
  for (uint32_t rows : {1u, 7u, 16u, 17u, 33u}) {
    for (uint32_t blocks : {1u, 3u, 8u, 37u}) {
      tensor w(t, rows, blocks * block_elements(t), random);
      for (const cpu_row* row : cpu_rows()) {
        if (!runs_here(*row)) continue;
        for (uint32_t r = 0; r < rows; r++) {
          std::vector<float> got(w.cols);
          row->row_to_float(w.panels, r, got.data());
          formats::weights want = w.meaning(r);
          ASSERT_EQ(0, std::memcmp(got.data(), want.value.data(), 4 * w.cols))
              << row->name << " " << name_of(t) << " row " << r << " of " << rows << "x" << w.cols;
        }
      }
    }
  }
}

TEST_P(Repack, TakesPanelsOneByOne) {
  dtype t = GetParam();
  formats::random random(8);
  tensor w(t, 40, 3 * block_elements(t), random);
  size_t bytes = panel_bytes(t, w.cols);
  EXPECT_EQ(bytes % 64, 0u);
  std::vector<std::byte> one(bytes, std::byte{0xee});
  for (uint32_t p = 0; p < 3; p++) {
    repack_panels(t, w.rows, w.cols, p, 1, tensor::row_of, &w, one.data());
    EXPECT_EQ(0, std::memcmp(one.data(), w.panels.panels + p * bytes, bytes)) << "panel " << p;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Repack, testing::ValuesIn(formats::all_types),
                         [](const auto& p) { return name_of(p.param); });

}  // namespace
}  // namespace lethe
