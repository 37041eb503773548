#pragma once

#include <utility>
#include <vector>

#include "kernels/cpu_row.hpp"

namespace lethe {

extern const cpu_row reference;

/// Rows of x as floats, `stride` apart, and, where its columns are whole units, quantized by the
/// reference.
struct input {
  uint32_t rows, cols;
  size_t stride;
  std::vector<float> f;
  std::vector<int8_t> q;
  std::vector<float> scales;
  std::vector<int16_t> sums;

  input(uint32_t m, uint32_t k, size_t apart, std::vector<float> values)
      : rows(m),
        cols(k),
        stride(apart),
        f(std::move(values)),
        q(size_t{m} * k),
        scales(size_t{m} * (k / 32)),
        sums(size_t{m} * (k / 16)) {
    if (k % 32 == 0)
      reference.quantize(f.data(), stride, m, k, q.data(), scales.data(), sums.data());
  }
  activations view() const {
    return {rows, f.data(), stride, {q.data(), scales.data(), sums.data()}};
  }
};

}  // namespace lethe
