#pragma once

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/kernels_attend_paged.hpp"
#include "tests/unit/kernels_defined_sums.hpp"

// Attention over f32 and bf16 keys and values as plain loops: what every arithmetic on cores sums,
// in what order, bit by bit.

namespace lethe {

/// What attention takes of numbers.
struct attention_arithmetic : defined_sums {
  /// A query's number, or a weight.
  float multiplied(float x) const { return how ? flushed(to_bf16(x)) : x; }
  float stored(kv_type type, float x) const {
    return type == kv_type::bf16 ? flushed(to_bf16(x)) : x;
  }
};

/// 2^x, by the polynomial that everyone takes.
inline float power_of_two(float x) {
  if (x < -126) return 0;
  float whole = std::nearbyint(x), r = x - whole, p = 0x1.5b63c0p-10f;
  for (float c : {0x1.3ce93ep-7f, 0x1.c6b840p-5f, 0x1.ebf9c0p-3f, 0x1.62e428p-1f, 1.0f})
    p = std::fma(p, r, c);
  return std::ldexp(p, int(whole));
}

/// 64 weights: those 16 apart one after the other, then halves of what is left.
inline float total_of(const float (&weights)[attention_tile]) {
  float sums[16] = {};
  for (uint32_t i = 0; i < attention_tile; i++) sums[i % 16] += weights[i];
  for (uint32_t half : {8u, 4u, 2u, 1u})
    for (uint32_t i = 0; i < half; i++) sums[i] += sums[i + half];
  return sums[0];
}

/// Head h's answer for the token at p.
class defined_attention {
 public:
  defined_attention(attention_arithmetic by, const attention_case& c, const attention_input& in,
                    uint32_t p, uint32_t h)
      : by_(by), c_(c), in_(in), last_(p), query_(c.head_dim) {
    first_ = c.window == 0 || p < c.window ? 0 : p + 1 - c.window;
    float scale = 1.0f / std::sqrt(float(c.head_dim)) * 0x1.715476p+0f;
    for (uint32_t d = 0; d < c.head_dim; d++)
      query_[d] = by.multiplied(in.q[(size_t{p} * c.heads + h) * c.head_dim + d] * scale);
  }

  /// Spans by position, each from nothing, joined in order.
  std::vector<float> answer() const {
    summed all(c_.head_dim);
    for (uint32_t at = first_ / span_keys * span_keys; at <= last_; at += span_keys) {
      summed span(c_.head_dim);
      for (uint32_t tile = at; tile < at + span_keys; tile += attention_tile) take(tile, span);
      float most = std::max(all.greatest, span.greatest);
      float before = power_of_two(all.greatest - most), own = power_of_two(span.greatest - most);
      auto join = [&](float& sum, float of_span) {
        sum = by_.flushed(std::fma(of_span, own, by_.flushed(std::fma(sum, before, 0.0f))));
      };
      join(all.total, span.total);
      for (uint32_t d = 0; d < c_.head_dim; d++) join(all.values[d], span.values[d]);
      all.greatest = most;
    }
    for (float& value : all.values) value = (value + 0.0f) / all.total;
    return all.values;
  }

 private:
  struct summed {
    explicit summed(uint32_t dim) : values(dim) {}
    float greatest = -std::numeric_limits<float>::infinity(), total = 0;
    std::vector<float> values;
  };
  float number(const std::vector<float>& of, uint32_t token, uint32_t d) const {
    return by_.stored(c_.type, of[size_t{token} * c_.head_dim + d]);
  }

  /// The 64 keys at `base`, if the token sees any, with the greatest score so far, but for some.
  void take(uint32_t base, summed& s) const {
    if (base > last_ || base + attention_tile <= first_) return;
    auto is_seen = [&](uint32_t i) { return first_ <= base + i && base + i <= last_; };
    float weights[attention_tile], most = -std::numeric_limits<float>::infinity();
    for (uint32_t i = 0; i < attention_tile; i++) {
      if (!is_seen(i)) continue;
      weights[i] = by_.with_products(
          0, c_.head_dim, [&](uint32_t d) { return query_[d]; },
          [&](uint32_t d) { return number(in_.k, base + i, d); });
      most = std::max(most, weights[i]);
    }
    if (most > s.greatest + raised_by) {
      float less_by = power_of_two(s.greatest - most);
      for (float& value : s.values) value = by_.flushed(value * less_by);
      s.total *= less_by, s.greatest = most;
    }
    for (uint32_t i = 0; i < attention_tile; i++)
      weights[i] = is_seen(i) ? power_of_two(weights[i] - s.greatest) : 0;
    s.total += total_of(weights);
    for (uint32_t d = 0; d < c_.head_dim; d++) {
      s.values[d] = by_.with_products(
          s.values[d], attention_tile, [&](uint32_t i) { return by_.multiplied(weights[i]); },
          [&](uint32_t i) { return is_seen(i) ? number(in_.v, base + i, d) : 0; });
    }
  }

  attention_arithmetic by_;
  const attention_case& c_;
  const attention_input& in_;
  uint32_t first_, last_;
  std::vector<float> query_;
};

/// That `got` says of these tokens' first and last head what the definition does.
inline void expect_definition(std::optional<rounding> how, const attention_case& c,
                              const attention_input& in, const std::vector<float>& got,
                              std::initializer_list<uint32_t> tokens) {
  for (uint32_t p : tokens) {
    for (uint32_t h : {0u, c.heads - 1}) {
      auto at = got.begin() + (size_t{p} * c.heads + h) * c.head_dim;
      EXPECT_TRUE(
          same_bits({at, at + c.head_dim}, defined_attention({{how}}, c, in, p, h).answer()))
          << "type " << int(c.type) << ", head size " << c.head_dim << ", window " << c.window
          << ", token " << p << ", head " << h;
    }
  }
}

}  // namespace lethe
