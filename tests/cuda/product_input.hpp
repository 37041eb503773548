#pragma once

#include "kernels/panels.hpp"
#include "tests/cuda/target.hpp"
#include "tests/unit/kernels_matmul_formats.hpp"
#include "tests/unit/kernels_matmul_input.hpp"

namespace lethe {

/// Rows with one float between them.
inline input random_input(uint32_t m, uint32_t k, formats::random& random) {
  std::normal_distribution<float> normal;
  std::vector<float> f(size_t{m} * (k + 1));
  for (float& v : f) v = normal(random);
  return input(m, k, k + 1, std::move(f));
}

struct on_target {
  room<float> f;
  room<int8_t> q;
  room<float> scales;
  room<int16_t> sums;
  on_target(const target& t, const input& x)
      : f(t, x.f), q(t, x.plain.q), scales(t, x.plain.scales), sums(t, x.plain.sums) {}
  activations view(const input& x) {
    return {.rows = x.rows,
            .f = f.data(),
            .stride = x.stride,
            .q = {q.data(), scales.data(), sums.data()}};
  }
};

/// The panels of a tensor on the target.
struct placed {
  room<std::byte> memory;
  matrix panels;
  placed(const target& t, const formats::tensor& w)
      : memory(t, {w.panels.panels, w.panels.panels + matrix_bytes(w.type, w.rows, w.cols)}),
        panels{w.type, w.rows, w.cols, memory.data()} {}
};

}  // namespace lethe
