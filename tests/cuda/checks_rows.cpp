#include <bit>
#include <cmath>
#include <numeric>

#include "tests/cuda/target.hpp"
#include "tests/unit/kernels_attend_paged.hpp"
#include "tests/unit/kernels_matmul_input.hpp"

namespace lethe {

extern const cpu_row reference;

namespace {

constexpr uint32_t odd_sizes[] = {1, 7, 8, 9, 16, 17, 31, 33, 63, 65, 100, 2049, 4096};

std::string differs(const std::string& what, uint32_t size) {
  return what + " differ at size " + std::to_string(size);
}

/// Runs into copies of `to` and compares all of them.
template <class On, class By>
bool same(const target& t, const std::vector<float>& to, On on, By by) {
  room<float> got(t, to);
  std::vector<float> want = to;
  if (on(got.data()) != 0) return false;
  by(want.data());
  return same_bits_of(got.read(), want);
}

std::string norm(const target& t) {
  constexpr uint32_t rows = 16;  // a root hides most differences of one bit below it
  for (uint32_t n : odd_sizes) {
    uint32_t stride = n + 5;
    std::vector<float> x = normal_floats(rows * stride, n, 3.0f), gain = normal_floats(n, n + 1);
    room<float> from(t, x), scale(t, gain);
    bool apart = same(
        t, std::vector<float>(rows * (n + 2), 99.0f),
        [&](float* y) {
          return t.row->rms_norm(from.data(), stride, scale.data(), {y, n + 2}, rows, n, 1e-5f,
                                 t.stream);
        },
        [&](float* y) {
          reference.rms_norm(x.data(), stride, gain.data(), y, n + 2, rows, n, 1e-5f);
        });
    bool in_place = same(
        t, x,
        [&](float* y) {
          return t.row->rms_norm(y, stride, scale.data(), {y, stride}, rows, n, 1e-6f, t.stream);
        },
        [&](float* y) { reference.rms_norm(y, stride, gain.data(), y, stride, rows, n, 1e-6f); });
    if (!apart || !in_place) return differs("norms", n);
  }
  return "";
}

/// Rows with numbers of all sizes, and blocks that are zero, tiny or not finite.
std::vector<float> rows_to_quantize(uint32_t m, uint32_t stride) {
  std::vector<float> x = normal_floats(size_t{m} * stride, 3);
  for (size_t i = 0; i < x.size(); i++) x[i] = std::ldexp(x[i], int(i / 32 % 40) - 20);
  for (size_t i = 0; i < 32 && i < x.size(); i++) x[i] = i % 2 ? 0.0f : -0.0f;
  for (size_t i = 64; i < 96 && i < x.size(); i++) x[i] = 1e-42f;
  float odd[] = {NAN, -NAN, INFINITY, -INFINITY, 127, 0.5f, 1.5f, -2.5f};
  for (size_t i = 0; i < 8 && 100 + 40 * i < x.size(); i++) x[100 + 40 * i] = odd[i];
  return x;
}

/// Quantized rows on a target, and whether they are those of `x`.
struct quantized_there {
  plain_rows want;
  room<int8_t> q;
  room<float> scales;
  room<int16_t> sums;

  quantized_there(const target& t, const std::vector<float>& x, uint32_t m, uint32_t cols,
                  size_t stride)
      : want(reference, quantized_by(reference, x, m, cols, stride), m, cols),
        q(t, std::vector<int8_t>(want.q.size(), 99)),
        scales(t, std::vector<float>(want.scales.size(), 99)),
        sums(t, std::vector<int16_t>(want.sums.size(), 99)) {}
  device_activations to(float* f = nullptr, size_t stride = 0) {
    return {f, stride, q.data(), scales.data(), sums.data()};
  }
  bool are_right() const {
    return same_bits_of(q.read(), want.q) && same_bits_of(scales.read(), want.scales) &&
           same_bits_of(sums.read(), want.sums);
  }
};

std::string quantize(const target& t) {
  struct shape {
    uint32_t m, cols, stride;
  };
  for (shape c : {shape{1, 32, 32}, {3, 96, 100}, {7, 288, 289}, {33, 64, 64}, {2, 4096, 4100}}) {
    std::vector<float> x = rows_to_quantize(c.m, c.stride);
    room<float> from(t, x);
    quantized_there got(t, x, c.m, c.cols, c.stride);
    device_error error = t.row->quantize(from.data(), c.stride, c.m, c.cols, got.to(), t.stream);
    if (error != 0 || !got.are_right()) return differs("quantized rows", c.cols);
  }
  return "";
}

/// With floats beside them, and without.
std::string norm_quantized(const target& t) {
  constexpr uint32_t rows = 3;
  for (uint32_t n : {32u, 96u, 288u, 2080u, 4096u}) {
    uint32_t stride = n + 5;
    std::vector<float> x = normal_floats(rows * stride, n, 3.0f), gain = normal_floats(n, n + 1);
    std::vector<float> normed(rows * n);
    reference.rms_norm(x.data(), stride, gain.data(), normed.data(), n, rows, n, 1e-5f);
    room<float> from(t, x), scale(t, gain), floats(t, std::vector<float>(rows * n));
    for (float* f : {floats.data(), static_cast<float*>(nullptr)}) {
      quantized_there got(t, normed, rows, n, n);
      device_error error = t.row->rms_norm(from.data(), stride, scale.data(), got.to(f, n), rows, n,
                                           1e-5f, t.stream);
      if (error != 0 || !got.are_right() || !same_bits_of(floats.read(), normed))
        return differs("quantized norms", n);
    }
  }
  return "";
}

std::string silu_quantized(const target& t) {
  for (uint32_t n : {32u, 224u, 256u, 4096u}) {
    std::vector<float> gate = normal_floats(n, n, 20.0f), up = normal_floats(n, n + 1), want(n);
    gate[7] = -1e30f, gate[8] = 1e-40f;
    reference.silu_multiply(gate.data(), up.data(), want.data(), n);
    room<float> device_gate(t, gate), device_up(t, up), floats(t, want);
    for (float* f : {floats.data(), static_cast<float*>(nullptr)}) {
      quantized_there got(t, want, 1, n, n);
      device_error error =
          t.row->silu_multiply(device_gate.data(), device_up.data(), got.to(f), n, t.stream);
      if (error != 0 || !got.are_right() || !same_bits_of(floats.read(), want))
        return differs("quantized products with silu", n);
    }
  }
  return "";
}

std::string silu(const target& t) {
  for (uint32_t n : odd_sizes) {
    std::vector<float> gate = normal_floats(n, n, 20.0f), up = normal_floats(n, n + 1);
    if (n > 100) {
      for (uint32_t i = 0; i < n; i++) gate[i] = (float(i) - float(n) / 2) * 0.1f;  // all of exp
      gate[0] = 1e30f, gate[1] = INFINITY, gate[2] = -0.0f, gate[3] = 1e-40f;
    }
    room<float> device_gate(t, gate), device_up(t, up);
    bool equal = same(
        t, std::vector<float>(n, 99.0f),
        [&](float* y) {
          return t.row->silu_multiply(device_gate.data(), device_up.data(), {y}, n, t.stream);
        },
        [&](float* y) { reference.silu_multiply(gate.data(), up.data(), y, n); });
    if (!equal) return differs("products with silu", n);
  }
  // -inf * 0 is a NaN everywhere, but not of the same sign.
  room<float> gates(t, {-INFINITY, NAN}), ones(t, {1.0f, 1.0f}), got(t, {0.0f, 0.0f});
  t.row->silu_multiply(gates.data(), ones.data(), {got.data()}, 2, t.stream);
  for (float y : got.read()) {
    if (!std::isnan(y)) return "silu hides a NaN";
  }
  return "";
}

/// Sums as a kernel puts them: alone, with a bias, onto other rows, both.
std::string put_as_asked(const target& t, const std::vector<float>& sums, uint32_t rows,
                         uint32_t cols,
                         const std::function<device_error(const device_output& to)>& run) {
  const uint32_t stride = cols + 3;
  const std::vector<float> bias = normal_floats(cols, 5), before = normal_floats(rows * stride, 6);
  room<float> with(t, bias), under(t, before);
  for (bool biased : {false, true}) {
    for (bool onto : {false, true}) {
      std::vector<float> want(rows * stride, 99.0f);
      room<float> got(t, want);
      for (uint32_t r = 0; r < rows; r++) {
        float* to = &want[r * stride];
        std::copy_n(&sums[r * cols], cols, to);
        if (biased) reference.add_bias(bias.data(), to, cols, 1, cols);
        if (!onto) continue;
        std::vector<float> row(&before[r * stride], &before[r * stride] + cols);
        reference.add(to, row.data(), cols);
        std::copy_n(row.data(), cols, to);
      }
      device_error error =
          run({got.data(), stride, biased ? with.data() : nullptr, onto ? under.data() : nullptr});
      if (error != 0 || !same_bits_of(got.read(), want))
        return std::string("sums") + (biased ? ", a bias" : "") + (onto ? ", onto others" : "") +
               " differ";
    }
  }
  return "";
}

/// The tree over parts [begin, end), cut in the middle of a power of two.
float tree(const std::vector<float>& x, size_t stride, size_t i, uint32_t begin, uint32_t end) {
  if (end - begin == 1) return x[begin * stride + i];
  uint32_t half = std::bit_ceil(end - begin) / 2;
  return tree(x, stride, i, begin, begin + half) + tree(x, stride, i, begin + half, end);
}

std::string add_tree(const target& t) {
  constexpr uint32_t rows = 2;
  for (uint32_t n : odd_sizes) {
    for (uint32_t count = 1; count <= segments; count++) {
      const size_t stride = rows * n + 3;
      std::vector<float> x = normal_floats(count * stride, n + count, 3.0f), sums(rows * n);
      for (uint32_t r = 0; r < count; r++) x[r * stride] = -0.0f;
      for (uint32_t i = 0; i < rows * n; i++) sums[i] = tree(x, stride, i, 0, count);
      room<float> from(t, x);
      std::string said = put_as_asked(t, sums, rows, n, [&](const device_output& to) {
        return t.row->add_tree(from.data(), stride, count, to, rows, n, t.stream);
      });
      if (!said.empty())
        return said + " of " + std::to_string(count) + " parts at size " + std::to_string(n);
    }
  }
  return "";
}

/// Where some parts are empty, where they differ, and where the last unit is not whole.
std::string join_columns(const target& t) {
  constexpr uint32_t rows = 3;
  for (uint32_t cols : {1u, 16u, 53u, 64u, 300u}) {
    for (uint32_t parts : {1u, 2u, 3u, 8u}) {
      for (uint32_t unit : {1u, 16u}) {
        uint32_t units = (cols + unit - 1) / unit;
        auto begin_of = [&](uint32_t p) { return std::min(cols, units * p / parts * unit); };
        size_t stride = size_t{rows} * (units + parts - 1) / parts * unit + 5;
        std::vector<float> want = normal_floats(rows * cols, cols), x(parts * stride, 99.0f);
        for (uint32_t p = 0; p < parts; p++) {
          uint32_t begin = begin_of(p), width = begin_of(p + 1) - begin;
          for (uint32_t r = 0; r < rows; r++) {
            std::copy_n(&want[r * cols + begin], width, &x[p * stride + r * width]);
          }
        }
        room<float> from(t, x);
        std::string said = put_as_asked(t, want, rows, cols, [&](const device_output& to) {
          return t.row->join_columns({from.data(), stride, rows, cols, parts, unit}, to, t.stream);
        });
        if (!said.empty())
          return said + " in rows of " + std::to_string(parts) + " parts at size " +
                 std::to_string(cols);
      }
    }
  }
  return "";
}

std::string wipe(const target& t) {
  for (uint32_t size : {0u, 16u, 48u, 4096u, 4112u, 70000u}) {
    std::vector<std::byte> memory(size + 32, std::byte{7});
    room<std::byte> all(t, memory);
    if (t.row->wipe(all.data() + 16, size, t.stream) != 0) return "a wipe failed";
    std::fill_n(memory.begin() + 16, size, std::byte{0});
    if (!same_bits_of(all.read(), memory)) return differs("wiped bytes", size);
  }
  return "";
}

}  // namespace

std::vector<check> row_checks() {
  return {{"rms_norm", norm},      {"rms_norm_quantized", norm_quantized},
          {"silu_multiply", silu}, {"silu_multiply_quantized", silu_quantized},
          {"add_tree", add_tree},  {"join_columns", join_columns},
          {"quantize", quantize},  {"wipe", wipe}};
}

}  // namespace lethe
