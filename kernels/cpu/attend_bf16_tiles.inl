#pragma once

#include "kernels/cpu/attend_paired.inl"
#include "kernels/cpu/attend_rounded.inl"
#include "kernels/cpu/bf16_tiles.inl"

// Attention over bf16 keys and values in registers of tiles (amx_registers.hpp).

namespace lethe {
namespace {

/// A product of 16 or 32 rows with two tiles or one beside each other, added to floats.
struct bf16_product {
  const uint16_t* x;      // of the first row
  size_t x_step;          // bytes
  const paired_tile* by;  // of the first unit
  size_t units, unit_step;
  float* to;
  size_t to_step;  // bytes
};

/// T times 16 rows by P times 16 columns. `from_zero`: else to what is there.
template <uint32_t T, uint32_t P>
[[gnu::noinline]] void multiply_pairs(tile_registers& tiles, const bf16_product& p,
                                      bool from_zero) {
  multiply_bf16_units<T, P>(
      tiles, uint32_t(p.units), from_zero,
      [&](uint32_t t, uint32_t c) __attribute__((always_inline)) {
        return tile_sums{p.to + t * 16 * p.to_step / sizeof(float) + c * 16, p.to_step};
      },
      p.x_step,
      [&](uint32_t t, uint32_t u) __attribute__((always_inline)) {
        return p.x + t * 16 * p.x_step / sizeof *p.x + u * bf16_together;
      },
      [&](uint32_t c, uint32_t u)
          __attribute__((always_inline)) { return p.by[u * p.unit_step + c]; },
      [](uint32_t) {});
}

/// All rows, whole tiles of them, by `columns` times 16 columns.
inline void multiply_all_pairs(tile_registers& tiles, bf16_product p, uint32_t rows,
                               uint32_t columns, bool from_zero) {
  for (uint32_t r = 0; r < rows; r += 32) {
    bf16_product q = p;
    uint32_t c = 0;
    bool two = r + 16 < rows;
    for (; c + 2 <= columns; c += 2, q.to += 32, q.by += 2)
      two ? multiply_pairs<2, 2>(tiles, q, from_zero) : multiply_pairs<1, 2>(tiles, q, from_zero);
    if (c < columns)
      two ? multiply_pairs<2, 1>(tiles, q, from_zero) : multiply_pairs<1, 1>(tiles, q, from_zero);
    p.x += 32 * p.x_step / sizeof *p.x;
    p.to += 32 * p.to_step / sizeof *p.to;
  }
}

void attend_in_tiles(const attention_work& w) {
  uint32_t units = units_of_dim(w.part.kv.head_dim), panels = uint32_t(w.at.padded_dim / 16);
  size_t floats = w.at.padded_dim * sizeof(float), scores = attention_tile * sizeof(float);
  paired_keys pairs(w);
  bf16_product by_keys{rounded_queries(w), floats, pairs.keys, units, attention_tile / 16,
                       w.in(w.at.scores),  scores};
  bf16_product by_values{
      rounded_weights(w), scores, pairs.values, attention_tile / bf16_together, panels,
      w.in(w.at.sums),    floats};
  tile_registers tiles(16, bf16_together * sizeof(uint16_t));
  round_queries(w);
  walk_pairs(
      w,
      [&](const tile_span&) {
        multiply_all_pairs(tiles, by_keys, w.queries, attention_tile / 16, true);
      },
      [&](const tile_span&) { multiply_all_pairs(tiles, by_values, w.queries, panels, false); });
}

void attend_rounded(const attention_work& w) {
  denormals_are_zeros mode;
  in_pages(w) ? attend_by_passes(w) : attend_in_tiles(w);
}

}  // namespace
}  // namespace lethe
