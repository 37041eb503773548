#include <gtest/gtest.h>

#include "runtime/model/load_part.hpp"

namespace lethe {
namespace {

// Heads of six whose pairs lie side by side in the file: the model's row r is file_row[r].
constexpr uint32_t head_dim = 6, rows = 12;
constexpr uint32_t file_row[rows] = {0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11};

raw_tensor tensor_of(const std::vector<float>& values, uint32_t rows_of, uint32_t cols) {
  raw_tensor t;
  t.type = dtype::f32;
  t.rows = rows_of;
  t.cols = cols;
  t.data = {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(float)};
  t.interleaved_rope = true;
  return t;
}

TEST(LoadPart, ABiasIsInTheModelsOrderWhicheverPartIsAskedFor) {
  std::vector<float> file(rows);
  for (uint32_t i = 0; i < rows; ++i) file[i] = float(100 + i);
  raw_tensor bias = tensor_of(file, 1, rows);
  for (auto [first, count] : {std::pair(0u, rows), {1u, 4u}, {5u, 2u}, {11u, 1u}}) {
    std::vector<float> got(count);
    load_floats(bias, head_dim, first, count, reinterpret_cast<std::byte*>(got.data()));
    for (uint32_t i = 0; i < count; ++i)
      EXPECT_EQ(got[i], float(100 + file_row[first + i])) << first << " " << i;
  }
}

TEST(LoadPart, RowsAreInTheModelsOrderFromTheColumnsAskedFor) {
  constexpr uint32_t cols = 9, begin = 2, end = 7;
  std::vector<float> file(rows * cols);
  for (uint32_t i = 0; i < file.size(); ++i) file[i] = float(i);
  raw_tensor weight = tensor_of(file, rows, cols);
  placed_tensor as;
  as.type = dtype::f32;
  as.rows = rows;
  as.cols = cols;
  std::vector<float> panel(panel_bytes(dtype::f32, end - begin) / sizeof(float), -1.0f);
  load_panels(weight, as, head_dim, {0, 1, begin, end}, reinterpret_cast<std::byte*>(panel.data()));
  for (uint32_t k = begin; k < end; ++k)
    for (uint32_t r = 0; r < panel_rows; ++r)
      EXPECT_EQ(panel[(k - begin) * panel_rows + r],
                r < rows ? float(file_row[r] * cols + k) : 0.0f)
          << k << " " << r;
}

}  // namespace
}  // namespace lethe
