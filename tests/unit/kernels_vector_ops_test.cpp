#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <iostream>

#include "tests/unit/kernels_attend_paged.hpp"

namespace lethe {
namespace {

constexpr uint32_t odd_sizes[] = {1, 7, 8, 9, 16, 17, 100, 4096};

/// Runs f on every row of this machine; each must give the reference's bits. Returns those.
std::vector<float> on_every_row(const std::function<std::vector<float>(const cpu_row&)>& f) {
  std::vector<float> expected = f(*find_cpu_row("reference"));
  for (const cpu_row* row : cpu_rows()) {
    if (runs_here(*row)) {
      EXPECT_TRUE(same_bits(f(*row), expected)) << row->name << ", floats " << expected.size();
    } else {
      std::cout << "skipped, this machine lacks it: " << row->name << "\n";
    }
  }
  return expected;
}

void expect_near(double got, double exact, double relative, double absolute = 0) {
  EXPECT_LE(std::abs(got - exact), std::abs(exact) * relative + absolute) << got << " " << exact;
}

TEST(RmsNorm, IsWithinRoundingOfTheDefinition) {
  constexpr uint32_t rows = 3;
  for (uint32_t n : odd_sizes) {
    uint32_t stride = n + 5;
    std::vector<float> x = normal_floats(rows * stride, n, 3.0f), gain = normal_floats(n, n + 1);
    std::vector<float> y = on_every_row([&](const cpu_row& row) {
      std::vector<float> out(rows * n, 99.0f);
      row.rms_norm(x.data(), stride, gain.data(), out.data(), n, rows, n, 1e-5f);
      return out;
    });
    for (uint32_t r = 0; r < rows; r++) {
      double sum = 0;
      for (uint32_t i = 0; i < n; i++) sum += std::pow(double(x[r * stride + i]), 2);
      double root = std::sqrt(sum / n + 1e-5);
      for (uint32_t i = 0; i < n; i++) {
        expect_near(y[r * n + i], x[r * stride + i] / root * gain[i], 1e-6);
      }
    }
  }
}

TEST(RmsNorm, WorksInPlaceAndLeavesTheRestOfTheRow) {
  std::vector<float> x = normal_floats(2 * 20, 1), gain = normal_floats(17, 2), apart = x;
  best_cpu_row().rms_norm(x.data(), 20, gain.data(), apart.data(), 20, 2, 17, 1e-6f);
  best_cpu_row().rms_norm(x.data(), 20, gain.data(), x.data(), 20, 2, 17, 1e-6f);
  EXPECT_TRUE(same_bits(x, apart));
}

struct rope_case {
  uint32_t heads, head_dim, rotary;
};

std::vector<float> rotated(const cpu_row& row, const rope_case& c, std::vector<float> x,
                           const std::vector<float>& cosines, const std::vector<float>& sines) {
  row.rope(x.data(), c.heads * c.head_dim + 3, 5, c.heads, c.head_dim, c.rotary, cosines.data(),
           sines.data());
  return x;
}

TEST(Rope, RotatesPairsHalfARotaryApartAndNothingElse) {
  for (rope_case c : {rope_case{2, 64, 64}, {3, 80, 32}, {1, 7, 2}, {2, 18, 18}, {1, 128, 100}}) {
    uint32_t half = c.rotary / 2, stride = c.heads * c.head_dim + 3;
    std::vector<float> x = normal_floats(5 * stride, 3), angles = normal_floats(5 * half, 4, 3.0f);
    std::vector<float> cosines, sines;
    for (float a : angles) cosines.push_back(std::cos(a)), sines.push_back(std::sin(a));
    std::vector<float> y =
        on_every_row([&](const cpu_row& row) { return rotated(row, c, x, cosines, sines); });
    for (uint32_t i = 0; i < x.size(); i++) {
      uint32_t r = i / stride, at = i % stride, d = at % c.head_dim;
      bool turned = at < c.heads * c.head_dim && d < c.rotary;
      if (!turned) {
        EXPECT_EQ(y[i], x[i]) << i;
      }
      if (!turned || d >= half) continue;
      double a = x[i], b = x[i + half], cosine = cosines[r * half + d], sine = sines[r * half + d];
      expect_near(y[i], a * cosine - b * sine, 1e-6, 1e-6);
      expect_near(y[i + half], b * cosine + a * sine, 1e-6, 1e-6);
    }
  }
}

/// On every row, compared with the definition.
void check_silu(const std::vector<float>& gate, const std::vector<float>& up) {
  std::vector<float> y = on_every_row([&](const cpu_row& row) {
    std::vector<float> out(gate.size());
    row.silu_multiply(gate.data(), up.data(), out.data(), gate.size());
    return out;
  });
  for (size_t i = 0; i < gate.size(); i++) {
    double x = gate[i];
    // By x times log2(e), and that number itself; above zero the power is but a small part.
    double power_rounded = std::max(-x, 0.0) * 0x1.4p-24;
    expect_near(y[i], x / (1.0 + std::exp(-x)) * up[i], 5e-7 + power_rounded, 1e-35);
  }
}

TEST(SiluMultiply, IsWithinRoundingOfTheDefinition) {
  for (uint32_t n : odd_sizes) check_silu(normal_floats(n, n, 20.0f), normal_floats(n, n + 1));
}

TEST(SiluMultiply, HasTheSameBitsOnEveryRowAllAlong) {
  // Every 20011th float from -100 up to -0, and multiples of log(2), where powers are whole.
  std::vector<float> gate;
  for (auto bits = std::bit_cast<uint32_t>(-0.0f); bits < std::bit_cast<uint32_t>(-100.0f);
       bits += 20011) {
    gate.push_back(std::bit_cast<float>(bits));
  }
  for (int n = 0; n < 130; n++) gate.push_back(float(-n * std::log(2.0)));
  check_silu(gate, std::vector<float>(gate.size(), 1.0f));
}

TEST(SiluMultiply, NeitherOverflowsNorHidesANaN) {
  std::vector<float> gate = {-INFINITY, -1e30f, -200.0f, 0.0f, 200.0f, 1e30f, INFINITY, NAN};
  std::vector<float> up(8, 1.0f), y(8);
  best_cpu_row().silu_multiply(gate.data(), up.data(), y.data(), 8);
  for (uint32_t i = 1; i < 4; i++) EXPECT_EQ(y[i], 0.0f);
  for (uint32_t i = 4; i < 7; i++) EXPECT_EQ(y[i], gate[i]);
  EXPECT_TRUE(std::isnan(y[7]));
}

TEST(Add, AddsRowsAndBiases) {
  for (uint32_t n : odd_sizes) {
    std::vector<float> x = normal_floats(n, 1), y = normal_floats(n, 2);
    std::vector<float> sum = on_every_row([&](const cpu_row& row) {
      std::vector<float> out = y;
      row.add(x.data(), out.data(), n);
      return out;
    });
    for (uint32_t i = 0; i < n; i++) EXPECT_EQ(sum[i], x[i] + y[i]);
    std::vector<float> rows(3 * (n + 2), 1.0f);
    best_cpu_row().add_bias(x.data(), rows.data(), n + 2, 3, n);
    for (uint32_t i = 0; i < rows.size(); i++) {
      EXPECT_EQ(rows[i], i % (n + 2) < n ? 1.0f + x[i % (n + 2)] : 1.0f);
    }
  }
}

/// The bytes of a cache after its rows have stored everything.
std::vector<float> stored(const cpu_row& row, const attention_case& c, const attention_input& in) {
  paged_cache cache(c);
  kv_view kv = cache.view();
  uint32_t first = c.tokens / 3;
  row.kv_store(kv, 0, first, in.k.data(), in.v.data(), c.head_dim);
  size_t at = size_t{first} * c.head_dim;
  row.kv_store(kv, first, c.tokens - first, in.k.data() + at, in.v.data() + at, c.head_dim);
  std::vector<float> bytes((c.tokens / c.page_tokens + 2) * kv.page_bytes / 4);
  std::memcpy(bytes.data(), kv.pool, bytes.size() * 4);
  return bytes;
}

/// A stored key or value: its groups of numbers, so many bytes apart, and its scale.
struct stored_row {
  const std::byte* numbers;
  size_t group, step;
  const std::byte* scale;
};

stored_row key_at(const kv_view& kv, uint32_t token) {
  size_t row = token % kv.page_tokens, size = kv_number_bytes(kv.type);
  size_t group = kv.type == kv_type::int8 ? 4 : 1;
  const std::byte* keys =
      kv.pool + kv.pages[token / kv.page_tokens] * kv.page_bytes + kv.key_offset;
  size_t numbers = kv_row_bytes(kv.type, kv.head_dim) - 4;
  return {keys + row * group * size, group, kv.page_tokens * group * size,
          keys + kv.page_tokens * numbers + row * 4};
}

stored_row value_at(const kv_view& kv, uint32_t token) {
  size_t row = token % kv.page_tokens, scale = kv.type == kv_type::int8 ? 4 : 0;
  size_t bytes = kv_row_bytes(kv.type, kv.head_dim) - scale;
  const std::byte* values =
      kv.pool + kv.pages[token / kv.page_tokens] * kv.page_bytes + kv.value_offset;
  size_t rows = kv.type == kv_type::int8 && kv.page_tokens % 4 == 0 ? 4 : 1;
  return {values + row / rows * rows * bytes + row % rows, 1, kv_number_bytes(kv.type) * rows,
          values + kv.page_tokens * bytes + row * 4};
}

/// Element d of a stored row, read by the format's definition.
float element_of(const kv_view& kv, const stored_row& row, uint32_t d) {
  float f = 0;
  const std::byte* at = row.numbers + d / row.group * row.step + d % row.group;
  if (kv.type == kv_type::f32) std::memcpy(&f, at, 4);
  if (kv.type == kv_type::bf16) std::memcpy(reinterpret_cast<std::byte*>(&f) + 2, at, 2);
  if (kv.type == kv_type::int8) {
    std::memcpy(&f, row.scale, 4);
    f *= float(int8_t(*at));
  }
  return f;
}

/// Chunks that begin and end anywhere, with whole groups of 16 rows among them or not.
TEST(KvStore, LaysAKeyAsAColumnAndAValueAsARowOrFourSideBySide) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    for (uint32_t page_tokens : {1u, 5u, 16u, 24u, 32u, 48u, 64u}) {
      for (uint32_t head_dim : {1u, 7u, 16u, 30u, 64u}) {
        attention_case c{
            .tokens = 100, .head_dim = head_dim, .type = type, .page_tokens = page_tokens};
        attention_input in = input_of(c);
        in.v = in.k;
        paged_cache cache(c);
        kv_view kv = cache.view();
        for (uint32_t at = 0, count = 1; at < 100; at += count, count = count * 5 % 77) {
          count = std::min(count, 100 - at);
          const float* x = in.k.data() + size_t{at} * head_dim;
          best_cpu_row().kv_store(kv, at, count, x, x, head_dim);
        }
        for (uint32_t i = 0; i < 100 * head_dim; i++) {
          uint32_t t = i / head_dim, d = i % head_dim;
          float key = element_of(kv, key_at(kv, t), d), value = element_of(kv, value_at(kv, t), d);
          ASSERT_EQ(key, value) << "token " << t << ", element " << d << ", pages of "
                                << page_tokens << ", head size " << head_dim;
          ASSERT_NEAR(value, in.k[i], 0.05) << "token " << t << ", element " << d;
        }
      }
    }
  }
}

TEST(KvStore, WritesEveryTypeWithinItsRounding) {
  for (kv_type type : {kv_type::f32, kv_type::bf16, kv_type::int8}) {
    for (uint32_t head_dim : {1u, 7u, 16u, 100u, 128u}) {
      attention_case c{.tokens = 20, .head_dim = head_dim, .type = type, .page_tokens = 7};
      attention_input in = input_of(c);
      on_every_row([&](const cpu_row& row) { return stored(row, c, in); });
      paged_cache cache(c);
      kv_view kv = cache.view();
      best_cpu_row().kv_store(kv, 0, 20, in.k.data(), in.v.data(), head_dim);
      for (uint32_t i = 0; i < 20 * head_dim; i++) {
        const float* x = in.v.data() + i / head_dim * head_dim;
        float amax = 0;
        for (uint32_t d = 0; d < head_dim; d++) amax = std::max(amax, std::abs(x[d]));
        double allowed = type == kv_type::f32    ? 0.0
                         : type == kv_type::bf16 ? std::abs(in.v[i]) / 256
                                                 : amax / 253.9;
        EXPECT_NEAR(element_of(kv, value_at(kv, i / head_dim), i % head_dim), in.v[i], allowed);
      }
    }
  }
}

TEST(KvStore, RoundsBf16TiesToEven) {
  attention_case c{.tokens = 1, .head_dim = 4, .type = kv_type::bf16, .page_tokens = 1};
  float down = 1.0f + 0x1p-8f, up = 1.0f + 0x1.8p-7f, x[4] = {down, up, INFINITY, NAN};
  paged_cache cache(c);
  kv_view kv = cache.view();
  best_cpu_row().kv_store(kv, 0, 1, x, x, 4);
  stored_row row = key_at(kv, 0);
  EXPECT_EQ(element_of(kv, row, 0), 1.0f);
  EXPECT_EQ(element_of(kv, row, 1), 1.0f + 0x1p-6f);
  EXPECT_EQ(element_of(kv, row, 2), INFINITY);
  EXPECT_TRUE(std::isnan(element_of(kv, row, 3)));
}

TEST(KvStore, KeepsAnInt8RowOfZerosAndDenormalsZero) {
  attention_case c{.tokens = 1, .head_dim = 5, .type = kv_type::int8, .page_tokens = 1};
  float zeros[5] = {}, tiny[5] = {1e-40f, -1e-40f, 0, 1e-38f, 0};
  paged_cache cache(c);
  kv_view kv = cache.view();
  best_cpu_row().kv_store(kv, 0, 1, zeros, tiny, 5);
  for (uint32_t d = 0; d < 5; d++) {
    EXPECT_EQ(element_of(kv, key_at(kv, 0), d), 0.0f);
    EXPECT_EQ(element_of(kv, value_at(kv, 0), d), 0.0f);
  }
}

}  // namespace
}  // namespace lethe
