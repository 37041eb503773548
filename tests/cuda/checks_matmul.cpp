#include <memory>
#include <utility>

#include "tests/cuda/product_input.hpp"
#include "tests/unit/kernels_attend_paged.hpp"

namespace lethe {

namespace {

using formats::tensor;

std::string multiply(const target& t, const tensor& w, const device_matrix& on, const input& x,
                     product_part part) {
  on_target device_x(t, x);
  uint32_t stride = part.row_end - part.row_begin + 3;
  std::vector<float> want(x.rows * stride, 12345.0f);
  room<float> got(t, want);
  device_product product{on, part, {got.data(), stride}};
  device_error error = t.row->matmul({&product, 1}, device_x.view(x), t.stream);
  reference.matmul(w.panels, part, x.view(), want.data(), stride);
  if (error == 0 && same_bits_of(got.read(), want)) return "";
  return "products differ, error " + std::to_string(error) + ": " + std::to_string(w.rows) + " x " +
         std::to_string(w.cols) + ", rows of x " + std::to_string(x.rows) + ", outputs [" +
         std::to_string(part.row_begin) + ", " + std::to_string(part.row_end) + "), segments [" +
         std::to_string(part.segment_begin) + ", " + std::to_string(part.segment_end) + ")";
}
std::string multiply(const target& t, const tensor& w, const device_matrix& on, uint32_t m,
                     product_part part, formats::random& random) {
  uint32_t cols = segment_begin(w.type, w.cols, part.segment_end) -
                  segment_begin(w.type, w.cols, part.segment_begin);
  return multiply(t, w, on, random_input(m, cols, random), part);
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
  const uint32_t counts[] = {1, 2, 4, 5, 7, 8, 9, 16, 17, 66, 3};
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

/// Numbers of rows of x and ranges of outputs around the edges of blocks, and many rows with every
/// range of segments. Most ranges of outputs are short, for what the emulation takes.
std::string edges(const target& t, dtype type) {
  formats::random random(17);
  const uint32_t blocks = block_elements(type) == 256 ? 3 : 11;
  tensor w(type, 145, blocks * block_elements(type), random);
  placed on(t, w);
  using range = std::pair<uint32_t, uint32_t>;
  const range ranges[] = {{127, 129}, {0, 17}, {120, 145}, {9, 137}};
  uint32_t turn = 0;
  for (uint32_t m : {7u, 8u, 9u, 16u, 17u, 31u, 32u, 33u, 63u, 64u, 65u, 130u}) {
    auto [begin, end] = ranges[turn++ % 4];
    std::string said = multiply(t, w, {on.panels}, m, {begin, end, 0, segments}, random);
    if (!said.empty()) return said;
  }
  for (uint32_t begin = 0; begin < segments; begin++) {
    for (uint32_t end = begin; end <= segments; end++) {
      uint32_t m = turn++ % 3 == 0 ? 7 : 65;
      std::string said = multiply(t, w, {on.panels}, m, {9, 18, begin, end}, random);
      if (!said.empty()) return said;
    }
  }
  return multiply(t, w, {on.panels}, 66, {0, 145, 0, segments}, random);
}

/// So many rows that large tiles take them in more than one band (matmul_tree.inl).
std::string bands(const target& t, dtype type) {
  formats::random random(19);
  tensor w(type, 145, block_elements(type), random);
  placed on(t, w);
  return multiply(t, w, {on.panels}, 1100, {9, 145, 0, segments}, random);
}

/// Rows whose numbers are all the same bits, with the largest integer scales there are; the others
/// are by turns the largest and the smallest halves of both signs.
void make_extreme(tensor& w, uint8_t numbers, uint8_t q6_scale) {
  const uint32_t half[] = {0x7bff, 0xfbff, 0x0001, 0x8001, 0x0000, 0x8000};
  const uint32_t size = block_bytes(w.type);
  for (size_t i = 0; i < w.file.size(); i += size) {
    uint8_t* b = &w.file[i];
    uint32_t d = half[i / size / (w.cols / block_elements(w.type)) % 6];
    std::memset(b, numbers, size);
    formats::put_u16(b + (w.type == dtype::q6_k ? 208 : 0), d);
    if (w.type == dtype::q6_k) std::memset(b + 192, q6_scale, 16);
    bool k45 = w.type == dtype::q4_k || w.type == dtype::q5_k;
    if (k45) std::memset(b + 4, 0xff, 12);
    if (k45 || w.type == dtype::q4_1 || w.type == dtype::q5_1) formats::put_u16(b + 2, d ^ 0x8000);
  }
  repack_panels(w.type, w.rows, w.cols, 0, (w.rows + panel_rows - 1) / panel_rows, tensor::row_of,
                &w, const_cast<std::byte*>(w.panels.panels));
}

/// The largest sums that integers can have, and zeros of either sign: no rounding and no zero may
/// tell which way integers became floats.
std::string extremes(const target& t, dtype type) {
  formats::random random(18);
  tensor w(type, 33, 2 * 256, random);
  using filling = std::pair<uint8_t, uint8_t>;
  for (filling of : {filling{0x00, 0x80}, {0xff, 0x7f}, {0x80, 0x80}, {0x7f, 0x7f}, {0x00, 0x00}}) {
    make_extreme(w, of.first, of.second);
    placed on(t, w);
    for (uint32_t m : {6u, 66u}) {
      std::vector<float> f(size_t{m} * w.cols);
      for (size_t i = 0; i < f.size(); i++) {
        uint32_t row = uint32_t(i / w.cols), k = uint32_t(i % w.cols), like = row % 7;
        float size = row % 2 ? 0x1p14f : 0x1p-98f;
        bool minus = like == 1 || (like == 2 && k % 2) || (like == 3 && k / 16 % 2) ||
                     (like == 4 && k / 32 % 2);
        f[i] = like == 5 ? 0.0f : minus ? -size : size;
      }
      std::string said = multiply(t, w, {on.panels}, input(m, w.cols, w.cols, std::move(f)),
                                  {0, w.rows, 0, segments});
      if (!said.empty()) return said + ", numbers " + std::to_string(of.first);
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

/// Several products of the same rows, of which some have a bias, some are added to rows, and one
/// has no outputs: more than go together, of one type and of two.
std::string together(const target& t, dtype type) {
  formats::random random(19);
  const uint32_t cols = block_elements(type) == 256 ? 1024 : 320;
  const dtype other = type == dtype::q8_0 ? dtype::q4_0 : dtype::q8_0;
  struct one {
    dtype type;
    product_part part;
    bool bias, onto;
  };
  std::vector<one> all = {{type, {0, 33, 0, segments}, true, true},
                          {type, {9, 9, 0, segments}, false, false},
                          {type, {17, 70, 0, segments}, true, false},
                          {type, {3, 50, 0, segments}, false, true}};
  if (!is_float(type) && cols % block_elements(other) == 0)
    all.insert(all.begin() + 1, {other, {0, 40, 0, segments}, false, false});
  for (uint32_t m : {1u, 3u, 8u, 12u, 40u, 66u}) {
    input x = random_input(m, cols, random);
    on_target device_x(t, x);
    std::vector<std::unique_ptr<placed>> weights;
    std::vector<std::unique_ptr<room<float>>> rooms;
    std::vector<device_product> products;
    std::vector<std::vector<float>> wants;
    auto there = [&](std::vector<float> v) {
      rooms.push_back(std::make_unique<room<float>>(t, v));
      return rooms.back()->data();
    };
    for (const one& p : all) {
      tensor w(p.type, 77, cols, random);
      weights.push_back(std::make_unique<placed>(t, w));
      uint32_t outputs = p.part.row_end - p.part.row_begin, stride = outputs + 3;
      std::vector<float> bias = normal_floats(outputs, 1), under = normal_floats(m * stride, 2);
      std::vector<float> want(m * stride, 99.0f);
      products.push_back({{weights.back()->panels},
                          p.part,
                          {.y = there(want),
                           .stride = stride,
                           .bias = p.bias ? there(bias) : nullptr,
                           .onto = p.onto ? there(under) : nullptr}});
      reference.matmul(w.panels, p.part, x.view(), want.data(), stride);
      if (p.bias) reference.add_bias(bias.data(), want.data(), stride, m, outputs);
      for (uint32_t r = 0; p.onto && r < m; r++) {
        for (uint32_t i = r * stride; i < r * stride + outputs; i++) want[i] = under[i] + want[i];
      }
      wants.push_back(want);
    }
    if (t.row->matmul(products, device_x.view(x), t.stream) != 0) return "products failed";
    for (size_t i = 0; i < products.size(); i++) {
      std::vector<float> got(wants[i].size());
      t.copy_out(got.data(), products[i].to.y, got.size() * sizeof(float));
      if (!same_bits_of(got, wants[i]))
        return "product " + std::to_string(i) + " of several differs, rows of x " +
               std::to_string(m);
    }
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
    device_product product{
        {far}, {first, first + panel_rows, 0, segments}, {got.data(), panel_rows}};
    t.row->matmul({&product, 1}, device_x.view(x), t.stream);
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
        {"matmul_together_" + name, [type](const target& t) { return together(t, type); }});
    if (!is_float(type)) {
      all.push_back({"matmul_edges_" + name, [type](const target& t) { return edges(t, type); }});
      all.push_back({"matmul_bands_" + name, [type](const target& t) { return bands(t, type); }});
      all.push_back(
          {"matmul_extremes_" + name, [type](const target& t) { return extremes(t, type); }});
    }
    all.push_back(
        {"rows_to_float_" + name, [type](const target& t) { return embedding(t, type); }});
  }
  return all;
}

}  // namespace lethe
