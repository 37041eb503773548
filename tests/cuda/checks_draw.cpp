#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/batch/drawing.hpp"
#include "tests/cuda/target.hpp"
#include "tests/unit/kernels_attend_paged.hpp"

namespace lethe {

extern const cpu_row reference;

namespace {

constexpr float endless = INFINITY;

/// Rows of logits as models make them, and as they should not.
std::vector<std::vector<float>> rows_of(uint32_t vocab) {
  auto normal = [vocab, seed = 0](float scale) mutable {
    return normal_floats(vocab, vocab + uint32_t(++seed), scale);
  };
  std::vector<std::vector<float>> rows{normal(1), normal(3), normal(20), normal(1e-6f),
                                       std::vector<float>(vocab, -2.5f)};
  auto changed = [&rows](std::vector<float> row, auto change) {
    for (size_t i = 0; i < row.size(); i++) row[i] = change(i, row[i]);
    rows.push_back(std::move(row));
  };
  changed(normal(3), [](size_t, float x) { return std::round(x); });  // many are equal
  changed(normal(3), [](size_t i, float x) { return i % 3 ? NAN : x; });
  changed(normal(3), [](size_t i, float x) { return i % 2 ? -endless : x; });
  changed(normal(3), [vocab](size_t i, float x) { return i == vocab / 2 ? 1e30f : x; });
  changed(normal(3), [vocab](size_t i, float) { return i == vocab - 1 ? 1.0f : -endless; });
  changed(normal(3), [](size_t i, float x) { return i % 300 == 6 ? endless : x; });
  changed(normal(3), [](size_t i, float) { return i % 2 ? 0.0f : -0.0f; });
  changed(normal(3), [](size_t, float) { return -endless; });
  changed(normal(3), [](size_t i, float) { return i % 2 ? NAN : -endless; });
  return rows;
}

/// Every filter alone, then some of them together.
row_draw random_draw(std::mt19937& random, uint32_t vocab, uint32_t turn) {
  auto one_of = [&random](std::initializer_list<float> all) {
    return all.begin()[random() % all.size()];
  };
  auto wants = [&random, turn](uint32_t filter) {
    return turn < 4 ? turn == filter : random() % 2 == 0;
  };
  row_draw how{.temperature = one_of({1.0f, 0.7f, 2.0f, 100.0f, 1e-30f})};
  if (random() % 16 == 0) how.temperature = 0;
  if (wants(0)) how.top_k = uint32_t(one_of({1, 2, 3, 4, 7, 40, 200, float(vocab) + 1}));
  if (wants(1)) how.typical_p = one_of({0.95f, 0.5f, 0.1f, 1e-6f});
  if (wants(2)) how.top_p = one_of({0.99f, 0.9f, 0.5f, 1e-6f});
  if (wants(3)) how.min_p = one_of({0.05f, 0.5f, 1.0f, 1e-6f});
  how.u = double(random()) * 0x1p-32;
  if (random() % 4 == 0) how.u = random() % 2 ? 0 : 1 - 0x1p-53;
  return how;
}

/// Plain draws whose chance lies where one id ends and the next begins: another order of additions
/// moves that by a last bit.
void add_edges(std::vector<row_draw>& draws, const std::vector<float>& logits, uint32_t row) {
  size_t whole = draw_whole(logits.size());
  std::vector<float> x(whole), w(whole), sums(draw_blocks(logits.size()));
  float largest = *std::max_element(logits.begin(), logits.end());
  reference.draw.weigh(logits.data(), logits.size(), largest, 1, x.data(), w.data(), sums.data());
  double total = 0, before = 0;
  for (float sum : sums) total += double(sum);
  for (size_t b = 0; b < sums.size(); before += double(sums[b++])) {
    double edge = before;
    for (size_t i = b * draw_block; i < b * draw_block + 100; i++) edge += double(w[i]);
    for (double u : {before / total, std::nextafter(edge / total, 0.0), edge / total})
      draws.push_back({.row = row, .u = std::min(u, 1 - 0x1p-53)});
  }
}

/// Draws of a flat row whose first filter leaves few of many blocks, and whose second few of these:
/// what is left moves together twice.
void add_moved_twice(std::vector<row_draw>& draws) {
  for (float typical_p : {0.12f, 0.15f, 0.2f, 0.25f})
    draws.push_back({.row = 0, .typical_p = typical_p, .top_p = 0.05f, .u = 0.5});
}

/// Of each row so many draws, in an order of their own.
std::vector<row_draw> draws_of(uint32_t vocab, uint32_t rows, uint32_t each) {
  std::mt19937 random(vocab);
  std::vector<row_draw> draws;
  for (uint32_t row = 0; row < rows; row++)
    for (uint32_t i = 0; i < each; i++) {
      draws.push_back(random_draw(random, vocab, (row + i) % 8));
      draws.back().row = row;
    }
  std::shuffle(draws.begin(), draws.end(), random);
  return draws;
}

std::string differs(const row_draw& how, uint32_t vocab, uint32_t got, uint32_t want) {
  std::string said = "draws differ: " + std::to_string(got) + ", not " + std::to_string(want);
  auto add = [&said](const char* name, double value) {
    said += std::string(", ") + name + " " + std::to_string(value);
  };
  add("vocab", vocab), add("row", how.row), add("top_k", how.top_k), add("u", how.u);
  add("temperature", double(how.temperature)), add("typical_p", double(how.typical_p));
  add("top_p", double(how.top_p)), add("min_p", double(how.min_p));
  return said;
}

std::string draws(const target& t, uint32_t vocab, uint32_t each) {
  std::vector<std::vector<float>> rows = rows_of(vocab);
  size_t stride = vocab + 3;
  std::vector<float> logits(rows.size() * stride, 99.0f);
  for (size_t r = 0; r < rows.size(); r++)
    std::copy(rows[r].begin(), rows[r].end(), &logits[r * stride]);
  std::vector<row_draw> list = draws_of(vocab, uint32_t(rows.size()), each);
  for (uint32_t row = 0; row < 2 && vocab >= 1000 && vocab < 5000; row++)
    add_edges(list, rows[row], row);
  if (vocab >= 32000) add_moved_twice(list);
  size_t scratch = list.size() * draw_whole(vocab);
  room<float> from(t, logits), weights(t, std::vector<float>(scratch, NAN));
  room<uint32_t> places(t, std::vector<uint32_t>(2 * scratch, UINT32_MAX));
  room<uint32_t> ids(t, std::vector<uint32_t>(list.size(), UINT32_MAX));
  room<row_draw> how(t, list);
  device_error error = t.row->draw({from.data(), stride, vocab, how.data(), uint32_t(list.size()),
                                    weights.data(), places.data(), ids.data()},
                                   t.stream);
  if (error != 0) return "a launch failed";
  std::vector<uint32_t> got = ids.read();
  sampler_scratch own(vocab, std::pmr::get_default_resource());
  for (size_t i = 0; i < list.size(); i++) {
    uint32_t want = draw(reference.draw, rows[list[i].row], list[i], own);
    if (got[i] != want) return differs(list[i], vocab, got[i], want);
  }
  return "";
}

template <uint32_t vocab, uint32_t each>
std::string draws_from(const target& t) {
  return draws(t, vocab, each);
}

}  // namespace

/// Sizes about a block of places; where few of many blocks are left; where k is fewer than blocks.
std::vector<check> draw_checks() {
  return {{"draw_of_1", draws_from<1, 1>},       {"draw_of_7", draws_from<7, 2>},
          {"draw_of_255", draws_from<255, 2>},   {"draw_of_256", draws_from<256, 2>},
          {"draw_of_257", draws_from<257, 3>},   {"draw_of_1000", draws_from<1000, 4>},
          {"draw_of_2500", draws_from<2500, 5>}, {"draw_of_32000", draws_from<32000, 1>}};
}

}  // namespace lethe
