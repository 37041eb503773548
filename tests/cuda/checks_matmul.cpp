#include <utility>

#include "tests/cuda/product_input.hpp"

namespace lethe {

namespace {

using formats::tensor;

std::string multiply(const target& t, const tensor& w, const device_matrix& on, uint32_t m,
                     product_part part, formats::random& random) {
  uint32_t cols = segment_begin(w.type, w.cols, part.segment_end) -
                  segment_begin(w.type, w.cols, part.segment_begin);
  input x = random_input(m, cols, random);
  on_target device_x(t, x);
  uint32_t stride = part.row_end - part.row_begin + 3;
  std::vector<float> want(m * stride, 12345.0f);
  room<float> got(t, want);
  device_error error = t.row->matmul(on, part, device_x.view(x), got.data(), stride, t.stream);
  reference.matmul(w.panels, part, x.view(), want.data(), stride);
  if (error == 0 && same_bits_of(got.read(), want)) return "";
  return "products differ, error " + std::to_string(error) + ": " + std::to_string(w.rows) + " x " +
         std::to_string(w.cols) + ", rows of x " + std::to_string(m) + ", outputs [" +
         std::to_string(part.row_begin) + ", " + std::to_string(part.row_end) + "), segments [" +
         std::to_string(part.segment_begin) + ", " + std::to_string(part.segment_end) + ")";
}

std::vector<uint32_t> widths(dtype t) {
  switch (block_elements(t)) {
    case 1:
      return {1, 7, 9, 31, 33, 257, 4096};
    case 32:
      return {32, 64, 96, 288, 1024, 4096};
    default:
      return {256, 512, 768, 2304, 4096};
  }
}

/// Every width with some heights and numbers of rows: all launchers, all tails.
std::string whole(const target& t, dtype type) {
  formats::random random(11);
  const uint32_t counts[] = {1, 2, 4, 5, 7, 8, 9, 16, 17, 33, 3};
  uint32_t turn = 0;
  for (uint32_t k : widths(type)) {
    for (uint32_t n : {1u, 7u, 16u, 17u, 33u}) {
      tensor w(type, n, k, random);
      placed on(t, w);
      std::string said =
          multiply(t, w, {on.panels}, counts[turn++ % 11], {0, n, 0, segments}, random);
      if (!said.empty()) return said;
    }
  }
  return "";
}

/// Ranges of outputs and of segments, as ranks cut them, and others.
std::string parts(const target& t, dtype type) {
  formats::random random(12);
  tensor w(type, 77, 11 * block_elements(type) * (is_float(type) ? 31 : 1), random);
  placed on(t, w);
  using range = std::pair<uint32_t, uint32_t>;
  for (range rows :
       {range{0, 5}, {3, 4}, {5, 16}, {9, 40}, {16, 77}, {31, 65}, {76, 77}, {20, 20}}) {
    for (uint32_t m : {1u, 3u, 6u}) {
      std::string said =
          multiply(t, w, {on.panels}, m, {rows.first, rows.second, 0, segments}, random);
      if (!said.empty()) return said;
    }
  }
  for (range s :
       {range{0, 1}, {0, 2}, {2, 4}, {0, 4}, {4, 8}, {7, 8}, {2, 7}, {3, 6}, {1, 8}, {5, 5}}) {
    for (uint32_t m : {1u, 2u, 19u}) {
      std::string said = multiply(t, w, {on.panels}, m, {9, 40, s.first, s.second}, random);
      if (!said.empty()) return said;
    }
  }
  return "";
}

/// Of a matrix only the panels under a rank's rows, and of these only its segments.
std::string held(const target& t, dtype type) {
  formats::random random(16);
  tensor w(type, 77, 11 * block_elements(type) * (is_float(type) ? 31 : 1), random);
  for (product_part there : {product_part{0, 77, 0, 8},
                             {37, 70, 0, 8},
                             {0, 77, 6, 8},
                             {0, 77, 0, 2},
                             {17, 77, 3, 6},
                             {64, 77, 7, 8}}) {
    matrix m = w.panels;
    size_t whole = panel_bytes(type, m.cols), begin = panel_bytes_before(m, there.segment_begin);
    size_t bytes = panel_bytes_before(m, there.segment_end) - begin;
    std::vector<std::byte> panels;
    uint32_t first = there.row_begin / panel_rows;
    for (uint32_t p = first; p * panel_rows < there.row_end; ++p) {
      const std::byte* from = m.panels + p * whole + begin;
      panels.insert(panels.end(), from, from + bytes);
      panels.resize((panels.size() + 63) / 64 * 64);
    }
    room<std::byte> on(t, panels);
    m.panels = on.data();
    for (uint32_t x_rows : {1u, 3u, 18u}) {
      std::string said =
          multiply(t, w, {m, first, there.segment_begin, there.segment_end}, x_rows, there, random);
      if (!said.empty()) return said;
    }
  }
  return "";
}

/// A matrix whose rows hold every f16 there is.
std::string every_half(const target& t) {
  formats::random random(13);
  tensor w(dtype::f16, 16, 4096, random);
  auto* halves = reinterpret_cast<uint16_t*>(const_cast<std::byte*>(w.panels.panels));
  for (uint32_t i = 0; i < 65536; i++) halves[i] = uint16_t(i);
  placed on(t, w);
  for (uint32_t r = 0; r < 16; r++) {
    room<uint32_t> id(t, {r});
    room<float> got(t, std::vector<float>(4096));
    t.row->rows_to_float(on.panels, id.data(), 1, got.data(), 4096, t.stream);
    std::vector<float> want(4096), have = got.read();
    reference.row_to_float(w.panels, r, want.data());
    for (uint32_t k = 0; k < 4096; k++) {
      bool both = std::isnan(want[k]) && std::isnan(have[k]);
      if (!both && std::memcmp(&want[k], &have[k], 4) != 0) return "halves differ";
    }
  }
  return "";
}

std::string embedding(const target& t, dtype type) {
  formats::random random(14);
  for (uint32_t k : widths(type)) {
    tensor w(type, 37, k, random);
    placed on(t, w);
    std::vector<uint32_t> rows = {36, 0, 15, 16, 0, 17, 31};
    room<uint32_t> ids(t, rows);
    std::vector<float> want(rows.size() * (k + 2), 99.0f);
    room<float> got(t, want);
    device_error error = t.row->rows_to_float(on.panels, ids.data(), uint32_t(rows.size()),
                                              got.data(), k + 2, t.stream);
    for (size_t i = 0; i < rows.size(); i++) {
      reference.row_to_float(w.panels, rows[i], want.data() + i * (k + 2));
    }
    if (error != 0 || !same_bits_of(got.read(), want)) return "rows differ at " + std::to_string(k);
  }
  return "";
}

/// A panel that lies more than four gigabytes into its matrix, of which only that panel is touched.
std::string far_panel(const target& t) {
  constexpr uint32_t cols = 4096, panel = 16385;
  formats::random random(15);
  tensor w(dtype::f32, panel_rows, cols, random);
  size_t bytes = panel_bytes(dtype::f32, cols), before = panel * bytes;
  auto* memory = static_cast<std::byte*>(t.take(before + bytes));
  t.copy_in(memory + before, w.panels.panels, bytes);
  matrix far{dtype::f32, (panel + 1) * panel_rows, cols, memory};
  uint32_t first = panel * panel_rows;
  bool same = true;
  for (uint32_t m : {1u, 2u, 5u}) {
    input x = random_input(m, cols, random);
    on_target device_x(t, x);
    std::vector<float> want(m * panel_rows);
    room<float> got(t, want);
    t.row->matmul({far}, {first, first + panel_rows, 0, segments}, device_x.view(x), got.data(),
                  panel_rows, t.stream);
    reference.matmul(w.panels, {0, panel_rows, 0, segments}, x.view(), want.data(), panel_rows);
    same = same && same_bits_of(got.read(), want);
  }
  std::vector<float> row(cols);
  room<float> got(t, row);
  room<uint32_t> id(t, {first + 3});
  t.row->rows_to_float(far, id.data(), 1, got.data(), cols, t.stream);
  reference.row_to_float(w.panels, 3, row.data());
  same = same && same_bits_of(got.read(), row);
  t.give(memory, before + bytes);
  return same ? "" : "a far panel differs";
}

}  // namespace

std::vector<check> matmul_checks() {
  std::vector<check> all = {{"far_panel", far_panel}, {"rows_to_float_every_half", every_half}};
  for (dtype type : formats::all_types) {
    std::string name = name_of(type);
    all.push_back({"matmul_" + name, [type](const target& t) { return whole(t, type); }});
    all.push_back({"matmul_parts_" + name, [type](const target& t) { return parts(t, type); }});
    all.push_back({"matmul_held_" + name, [type](const target& t) { return held(t, type); }});
    all.push_back(
        {"rows_to_float_" + name, [type](const target& t) { return embedding(t, type); }});
  }
  return all;
}

}  // namespace lethe
