#include <bit>
#include <cmath>

#include "tests/cuda/product_input.hpp"

// Products by tensor cores: near the reference by what rounding costs, exact where nothing is
// rounded, and the same bits in whatever company.

namespace lethe {

namespace {

using formats::tensor;

/// Of each way that rows are multiplied some, up to `most`.
constexpr uint32_t counts[] = {1, 2, 7, 8, 9, 33, 64, 65, 128, 129, 141}, most = 141;

/// Rows [first, first + count) of x, times a part, to rows of just its outputs.
std::vector<float> product(const target& t, const device_matrix& w, product_part part,
                           const input& x, uint32_t first, uint32_t count) {
  uint32_t origin = segment_begin(w.of.type, w.of.cols, part.segment_begin);
  uint32_t outputs = part.row_end - part.row_begin;
  room<float> f(t, x.f), y(t, std::vector<float>(size_t{count} * outputs, 12345.0f));
  activations on{.rows = count, .f = f.data() + first * x.stride + origin, .stride = x.stride};
  device_product product{w, part, {y.data(), outputs}};
  if (t.row->matmul({&product, 1}, on, t.stream) != 0) return {};
  return y.read();
}

std::vector<float> by_reference(const tensor& w, const input& x) {
  std::vector<float> y(size_t{x.rows} * w.rows);
  reference.matmul(w.panels, {0, w.rows, 0, segments}, x.view(), y.data(), w.rows);
  return y;
}

/// x is rounded to 8 bits, beside f16 to 11; each of k sums costs less than 2^-22 of all that is
/// added, even where a device cuts what it adds.
std::string near(const target& t, dtype type) {
  formats::random random(21);
  double rounding = type == dtype::bf16 ? 0x1p-8 : 0x1p-11;
  for (uint32_t k : {1u, 7u, 33u, 257u, 2048u}) {
    for (uint32_t m : {1u, 9u, 40u, most}) {
      tensor w(type, 33, k, random);
      placed on(t, w);
      input x = random_input(m, k, random);
      auto got = product(t, {on.panels}, {0, w.rows, 0, segments}, x, 0, m);
      auto want = by_reference(w, x);
      if (got.size() != want.size()) return "no products";
      for (uint32_t n = 0; n < w.rows; n++) {
        auto of = w.meaning(n);
        for (uint32_t r = 0; r < m; r++) {
          double size = 0;
          for (uint32_t i = 0; i < k; i++)
            size += std::abs(double(of.value[i]) * x.f[r * x.stride + i]);
          double error = std::abs(double(got[r * w.rows + n]) - want[r * w.rows + n]);
          if (!(error <= size * (rounding + k * 0x1p-22)))
            return "too far from the reference at k " + std::to_string(k) + ", rows of x " +
                   std::to_string(m);
        }
      }
    }
  }
  return "";
}

/// Numbers that nothing rounds.
std::string whole_numbers(const target& t, dtype type) {
  formats::random random(22);
  tensor w(type, 49, 300, random);
  auto* halves = reinterpret_cast<uint16_t*>(const_cast<std::byte*>(w.panels.panels));
  for (size_t i = 0; i < matrix_bytes(type, w.rows, w.cols) / 2; i++) {
    auto small = float(int(random() % 17) - 8);
    halves[i] = type == dtype::bf16 ? uint16_t(std::bit_cast<uint32_t>(small) >> 16)
                                    : std::bit_cast<uint16_t>(_Float16(small));
  }
  placed on(t, w);
  std::vector<float> f(most * 300);
  for (float& v : f) v = float(int(random() % 129) - 64);
  input x(most, 300, 300, std::move(f));
  for (uint32_t m : counts) {
    input some(m, 300, 300, {x.f.begin(), x.f.begin() + m * 300});
    if (product(t, {on.panels}, {0, w.rows, 0, segments}, some, 0, m) != by_reference(w, some))
      return "whole numbers are not exact in " + std::to_string(m) + " rows";
  }
  return "";
}

/// Rows one by one, in few, in many: x begins at a multiple of 16 bytes, or does not.
std::string same_in_any_company(const target& t, dtype type) {
  formats::random random(23);
  constexpr uint32_t k = 264, n = 150;
  tensor w(type, n, k, random);
  placed on(t, w);
  input apart = random_input(most, k, random);
  input close(most, k, k, {});
  for (uint32_t r = 0; r < most; r++)
    close.f.insert(close.f.end(), &apart.f[r * apart.stride], &apart.f[r * apart.stride] + k);
  product_part all{0, n, 0, segments};
  auto want = product(t, {on.panels}, all, close, 0, most);
  for (const input* x : {&apart, &close}) {
    for (uint32_t count : counts) {
      for (uint32_t first : {0u, most - count}) {
        auto got = product(t, {on.panels}, all, *x, first, count);
        if (!std::equal(got.begin(), got.end(), want.begin() + first * n))
          return "rows from " + std::to_string(first) + ", " + std::to_string(count) +
                 " of them, have other bits";
      }
    }
  }
  return "";
}

/// So many that large tiles take them in more than one band (matmul_tree.inl).
std::string same_in_bands(const target& t, dtype type) {
  formats::random random(27);
  constexpr uint32_t k = 72, n = 300, rows = 1100;
  tensor w(type, n, k, random);
  placed on(t, w);
  input x = random_input(rows, k, random);
  product_part part{9, n, 0, segments};
  const uint32_t outputs = part.row_end - part.row_begin;
  auto all = product(t, {on.panels}, part, x, 0, rows);
  for (uint32_t first : {0u, 500u, rows - most}) {
    auto some = product(t, {on.panels}, part, x, first, most - 20);
    if (some.empty() || !std::equal(some.begin(), some.end(), &all[size_t{first} * outputs]))
      return "rows from " + std::to_string(first) + " of many have other bits";
  }
  return "";
}

/// A rank's share: whole segments of some rows, in memory that has nothing else.
struct share {
  std::vector<std::byte> panels;
  device_matrix matrix;
  share(const tensor& w, product_part there) : matrix{w.panels} {
    size_t whole = panel_bytes(w.type, w.cols);
    size_t begin = panel_bytes_before(w.panels, there.segment_begin);
    size_t end = panel_bytes_before(w.panels, there.segment_end);
    matrix.first_panel = there.row_begin / panel_rows;
    matrix.segment_begin = there.segment_begin, matrix.segment_end = there.segment_end;
    for (uint32_t p = matrix.first_panel; p * panel_rows < there.row_end; p++) {
      const std::byte* from = w.panels.panels + p * whole;
      panels.insert(panels.end(), from + begin, from + end);
      panels.resize((panels.size() + 63) / 64 * 64);
    }
  }
};

std::string same_in_any_cut(const target& t, dtype type) {
  formats::random random(24);
  for (uint32_t cols : {149u, 256u}) {
    tensor w(type, 77, cols, random);
    placed on(t, w);
    input x = random_input(most, cols, random);
    auto want = product(t, {on.panels}, {0, 77, 0, segments}, x, 0, most);
    auto part_of_it = [&](product_part part, uint32_t count) {
      share own(w, part);
      room<std::byte> memory(t, own.panels);
      own.matrix.of.panels = memory.data();
      return product(t, own.matrix, part, x, 0, count);
    };
    for (product_part part : {product_part{9, 40, 0, 8}, {31, 65, 0, 8}, {16, 77, 0, 8}}) {
      for (uint32_t count : {1u, 9u, 40u, most}) {
        auto got = part_of_it(part, count);
        uint32_t outputs = part.row_end - part.row_begin;
        for (uint32_t r = 0; r < count; r++)
          if (!std::equal(&got[r * outputs], &got[r * outputs] + outputs,
                          &want[r * 77 + part.row_begin]))
            return "outputs from " + std::to_string(part.row_begin) + " have other bits";
      }
    }
    for (uint32_t ranks : {2u, 4u, 8u}) {
      std::vector<std::vector<float>> sums;
      for (uint32_t s = 0; s < segments; s += segments / ranks)
        sums.push_back(part_of_it({0, 77, s, s + segments / ranks}, most));
      for (; sums.size() > 1; sums.resize(sums.size() / 2))
        for (size_t i = 0; i < sums.size() / 2; i++)
          for (size_t j = 0; j < want.size(); j++) sums[i][j] = sums[2 * i][j] + sums[2 * i + 1][j];
      if (sums[0] != want) return std::to_string(ranks) + " ranks have other bits than one";
    }
  }
  return "";
}

/// The control: the same products behind eight zeros, so in other places of K, have other bits.
std::string elsewhere_differs(const target& t, dtype type) {
  formats::random random(25);
  tensor w(type, 16, 504, random), later(type, 16, 512, random);
  auto* to = const_cast<std::byte*>(later.panels.panels);
  std::memset(to, 0, 8 * 32);
  std::memcpy(to + 8 * 32, w.panels.panels, 504 * 32);
  placed on(t, w), on_later(t, later);
  input x = random_input(3, 504, random), moved(3, 512, 512, std::vector<float>(3 * 512));
  for (uint32_t r = 0; r < 3; r++) std::copy_n(&x.f[r * x.stride], 504, &moved.f[r * 512 + 8]);
  bool same = product(t, {on.panels}, {0, 16, 0, segments}, x, 0, 3) ==
              product(t, {on_later.panels}, {0, 16, 0, segments}, moved, 0, 3);
  return same ? "an order by the first column that is not zero would not be told from ours" : "";
}

/// Of other types it has the exact kernels.
std::string others_are_exact(const target& t) {
  formats::random random(26);
  for (dtype type : {dtype::f32, dtype::q8_0, dtype::q4_k}) {
    tensor w(type, 33, 512, random);
    placed on(t, w);
    input x = random_input(5, 512, random);
    on_target device_x(t, x);
    room<float> y(t, std::vector<float>(5 * 33));
    device_product product{{on.panels}, {0, 33, 0, segments}, {y.data(), 33}};
    t.row->matmul({&product, 1}, device_x.view(x), t.stream);
    if (!same_bits_of(y.read(), by_reference(w, x))) return std::string(name_of(type)) + " differs";
  }
  return "";
}

}  // namespace

std::vector<check> tensor_matmul_checks() {
  std::vector<check> all = {{"tensor_others_are_exact", others_are_exact}};
  constexpr check_of<dtype> kinds[] = {
      {"near", near},           {"whole_numbers", whole_numbers}, {"company", same_in_any_company},
      {"bands", same_in_bands}, {"cuts", same_in_any_cut},        {"elsewhere", elsewhere_differs}};
  for (dtype type : {dtype::bf16, dtype::f16})
    add_checks(all, "tensor_products_", type, name_of(type), kinds);
  return all;
}

}  // namespace lethe
