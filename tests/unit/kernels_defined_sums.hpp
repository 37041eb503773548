#pragma once

#include <optional>

#include "tests/unit/kernels_matmul_input.hpp"
#include "tests/unit/kernels_rows_here.hpp"

// In what order each arithmetic on cores sums products, as plain loops.

namespace lethe {

inline float float_of(uint16_t bf16) { return std::bit_cast<float>(uint32_t{bf16} << 16); }
inline float to_bf16(float x) { return float_of(rounded_to_bf16(x)); }

/// nullopt: exact. By arithmetics that round, denormals are zeros.
struct defined_sums {
  std::optional<rounding> how;

  float flushed(float x) const {
    return how && std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
  }

  /// `sum` and a(i) * b(i) for i below `count`. Exactly: one after the other. By tiles 32 after the
  /// other: even ones from zero, odd ones from zero, both together to the sum so far. By pairs the
  /// odd one of each two, then the even one.
  template <class A, class B>
  float with_products(float sum, uint32_t count, A a, B b) const {
    auto with = [&](float before, uint32_t i) {
      return i < count ? flushed(std::fma(a(i), b(i), before)) : before;
    };
    for (uint32_t k = 0; k < count; k += 32) {
      float part[2] = {};
      for (uint32_t i = k; i < std::min(k + 32, count); i += 2) {
        if (!how) sum = with(with(sum, i), i + 1);
        if (how == rounding::pairs) sum = with(with(sum, i + 1), i);
        part[0] = with(part[0], i), part[1] = with(part[1], i + 1);
      }
      if (how == rounding::tensor) sum = flushed(sum + flushed(part[0] + part[1]));
    }
    return sum;
  }
};

}  // namespace lethe
