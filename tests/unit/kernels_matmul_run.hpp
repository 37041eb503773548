#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "kernels/cpu_row.hpp"
#include "tests/unit/kernels_matmul_formats.hpp"
#include "tests/unit/kernels_matmul_input.hpp"

// Products of a row, whole, in parts and of rows alone.

namespace lethe {

using formats::tensor;

/// Copies columns of some rows, as a rank that holds a part would.
inline input cut(const input& x, uint32_t begin, uint32_t end, uint32_t first_row,
                 uint32_t row_count) {
  std::vector<float> part;
  for (uint32_t r = first_row; r < first_row + row_count; r++) {
    part.insert(part.end(), &x.f[r * x.cols] + begin, &x.f[r * x.cols] + end);
  }
  return input(row_count, end - begin, end - begin, std::move(part));
}

inline input random_input(uint32_t m, uint32_t k, formats::random& random) {
  std::normal_distribution<float> normal;
  std::vector<float> f(m * k);
  for (float& v : f) v = normal(random);
  return input(m, k, k, std::move(f));
}

inline constexpr float untouched = 12345;

inline std::vector<float> multiply(const cpu_row& row, const tensor& w, const input& x,
                                   product_part part) {
  uint32_t width = part.row_end - part.row_begin, stride = width + 3;
  std::vector<float> y(x.rows * stride, untouched), packed;
  row.matmul(w.panels, part, x.view(row), y.data(), stride);
  for (uint32_t m = 0; m < x.rows; m++) {
    packed.insert(packed.end(), &y[m * stride], &y[m * stride] + width);
    for (uint32_t i = width; i < stride; i++) EXPECT_EQ(y[m * stride + i], untouched) << row.name;
  }
  return packed;
}
inline std::vector<float> multiply(const cpu_row& row, const tensor& w, const input& x) {
  return multiply(row, w, x, {0, w.rows, 0, segments});
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

/// Of each row what it gives alone: one row goes along weights as no block does.
inline void expect_rows_alone(const cpu_row& row, const tensor& w, const input& x) {
  std::vector<float> all = multiply(row, w, x);
  for (uint32_t m = 0; m < x.rows; m++) {
    std::vector<float> one = multiply(row, w, cut(x, 0, x.cols, m, 1));
    ASSERT_EQ(0, std::memcmp(one.data(), &all[m * w.rows], 4 * w.rows))
        << row.name << " row " << m << " of " << x.rows;
  }
}

/// The products of parts of K, joined as ranks would.
inline std::vector<float> joined(const cpu_row& row, const tensor& w, const input& x,
                                 uint32_t begin, uint32_t end, uint32_t smallest) {
  if (end - begin == smallest) {
    uint32_t first = segment_begin(w.type, w.cols, begin),
             last = segment_begin(w.type, w.cols, end);
    return multiply(row, w, cut(x, first, last, 0, x.rows), {0, w.rows, begin, end});
  }
  uint32_t middle = (begin + end) / 2;
  std::vector<float> a = joined(row, w, x, begin, middle, smallest);
  std::vector<float> b = joined(row, w, x, middle, end, smallest);
  for (size_t i = 0; i < a.size(); i++) a[i] += b[i];
  return a;
}

/// Memory that ends where nothing may be read.
template <class T>
class before_the_end {
 public:
  explicit before_the_end(const std::vector<T>& units) {
    size_t page = size_t(sysconf(_SC_PAGESIZE)), used = units.size() * sizeof(T);
    bytes_ = (used + page - 1) / page * page + page;
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    begin_ = static_cast<char*>(at);
    EXPECT_EQ(0, mprotect(begin_ + bytes_ - page, page, PROT_NONE));
    std::memcpy(begin_ + bytes_ - page - used, units.data(), used);
    units_ = reinterpret_cast<const T*>(begin_ + bytes_ - page - used);
  }
  before_the_end(const before_the_end&) = delete;
  ~before_the_end() { munmap(begin_, bytes_); }
  const T* units() const { return units_; }

 private:
  char* begin_;
  size_t bytes_;
  const T* units_;
};

}  // namespace lethe
