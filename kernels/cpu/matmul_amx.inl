// Products of many rows with quantized weights in registers of tiles (amx_registers.hpp): the same
// integers, and the same sums of floats from them.

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "kernels/cpu_row.hpp"
#include "kernels/kernel_stack.hpp"
#include "kernels/panels.hpp"

namespace lethe {
namespace {

/// Rows of x in a tile, panels of weights beside each other, rows of a block, and units whose
/// products wait in the nearest cache. All of them come first: after a tile a processor multiplies
/// floats at half its pace for a while.
inline constexpr uint32_t amx_rows = 16, amx_panels = 2, amx_block_rows = 8 * amx_rows;
inline constexpr uint32_t amx_units = 4;
/// Panels that stay in the second cache, beside a block of x, until all blocks have had them.
inline constexpr uint32_t amx_near_panels = 8;
static_assert(amx_rows - 1 <= x_units_beyond);
/// Products of a unit with a panel, [row][lane].
using tile_products = int32_t[amx_rows][panel_rows];
using amx_sums = segment_tree<amx_block_rows * amx_panels>;  // tile after tile, [panel][row]

template <dtype T>
struct amx_work {
  amx_work(const product_part& part, uint32_t tile_rows)
      : tree(part.segment_begin, part.segment_end), tiles(tile_rows, unit_columns) {}
  amx_sums tree;
  prepared_unit<T> ready[amx_units * amx_panels];  // [unit][panel]
  tile_products products[amx_units * amx_panels];  // as `ready`
  tile_registers tiles;
};

/// Numbers with sign, as tiles multiply them.
template <dtype T>
inline void prepare_signed_unit(unit_place at, prepared_unit<T>& u) {
  prepare_unit<T>(at, u);
  if constexpr (offset_of<T>() != 0) {
    for (byte_lanes& w : u.w) w = bytes_less(w, offset_of<T>());
  }
}

/// The products of a chunk with a tile of x, each stored while the next is multiplied. Of a lower
/// tile what lies behind its rows is multiplied, too, and nobody looks at it.
template <dtype T, uint32_t P>
[[gnu::noinline]] void multiply_tile(uint32_t units, const row_tile& tile, const x_unit* x,
                                     lines_evenly (&coming)[P], amx_work<T>& work) {
  const prepared_unit<T>* ready = work.ready;
  tile_products* to = work.products;
  tile_registers& tiles = work.tiles;
  auto multiply = [&](auto turn) __attribute__((always_inline)) {
    constexpr uint32_t x_at = turn(), first = 4 + 2 * turn(), second = first + 1;
    tiles.load<x_at>(x->q, sizeof(x_unit));
    tiles.load<2>(ready[0].w, 64);
    tiles.clear<first>();
    tiles.multiply<first, x_at, 2>();
    if constexpr (P > 1) {
      tiles.load<3>(ready[1].w, 64);
      tiles.clear<second>();
      tiles.multiply<second, x_at, 3>();
    }
    x += tile.step, ready += P;
#pragma GCC unroll 2
    for (lines_evenly& lines : coming) lines.step<cache::second>();
  };
  auto store = [&](auto turn) __attribute__((always_inline)) {
    tiles.store<4 + 2 * turn()>(to[0], 64);
    if constexpr (P > 1) tiles.store<5 + 2 * turn()>(to[1], 64);
    to += P;
  };
  std::integral_constant<uint32_t, 0> even;
  std::integral_constant<uint32_t, 1> odd;
  for (uint32_t u = 0; u < units; u += 2) {
    multiply(even);
    if (u > 0) store(odd);
    if (u + 1 < units) multiply(odd);
    store(even);
  }
  if (units != 0 && units % 2 == 0) store(odd);
}

/// The units of a chunk that are multiplied with a panel and a tile of x: where the first one's
/// products, scales (and minimums behind them) and rows of x are, how far it is to the next, and
/// what of x comes next.
struct multiplied_units {
  const tile_products* products;
  const lanes* scales;
  const x_unit *x, *next;
  size_t products_step, scales_step, x_step;
};

/// The sums of R rows from place `at` on. What is read of `m`, just written, is read one by one: a
/// vector of it would wait until all products are in the cache.
template <dtype T, uint32_t R>
[[gnu::noinline]] void add_products(const chunk& c, const multiplied_units& m, uint32_t at,
                                    lines_evenly& coming, amx_sums& tree) {
  static_assert(T != dtype::q6_k);  // which has two scales a unit
  lanes* waiting = tree.sums(c.segment, at);
  lanes sums[R];
#pragma GCC unroll 16
  for (uint32_t r = 0; r < R; r++) sums[r] = c.begins ? zero() : waiting[r];
  const tile_products* products = m.products;
  const lanes* scales = m.scales;
  const x_unit *x = m.x, *next = m.next;
  for (uint32_t u = 0; u < c.units.size(); u++) {
    lanes scale = scales[0], start = scaled_start<T>(scale);
    coming.step<cache::second>();
#pragma GCC unroll 16
    for (uint32_t r = 0; r < R; r++) {
      int_lanes product = int_add(int_set1(product_start), int_load((*products)[r]));
      sums[r] = fma(scaled_product<T>(product, scale, start), set1(x[r].scale), sums[r]);
      if constexpr (has_minimum<T>()) sums[r] = fma(scales[1], set1(x[r].scaled_sum), sums[r]);
    }
#pragma GCC unroll 16
    for (uint32_t i = 0; i < R * sizeof(x_unit) / amx_panels; i += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(next) + i);
    products += m.products_step, scales += m.scales_step, x += m.x_step, next += m.x_step;
  }
  if (c.ends) {
    tree.template join<R>(c.segment, at, sums);
    waiting = tree.joined(c.segment, at);
  }
#pragma GCC unroll 16
  for (uint32_t r = 0; r < R; r++) waiting[r] = sums[r];
}

/// add_products for 1 to R rows.
template <dtype T, uint32_t R = amx_rows>
void add_some_products(uint32_t rows, const chunk& c, const multiplied_units& m, uint32_t at,
                       lines_evenly& coming, amx_sums& tree) {
  if constexpr (R > 1) {
    if (rows < R) return add_some_products<T, R - 1>(rows, c, m, at, coming, tree);
  }
  add_products<T, R>(c, m, at, coming, tree);
}

/// A chunk of P panels. Meanwhile the one after the next is asked for.
template <dtype T, uint32_t P>
void add_amx_chunk(const product_part& part, const panel_group& group, const chunk& c,
                   const row_block& rows, amx_work<T>& work) {
  uint32_t units = c.units.size(), tiles = (rows.size() - 1) / rows.layout.tile + 1;
  for (uint32_t p = 0; p < P; p++) {
    for (uint32_t u = 0; u < units; u++) {
      prepare_signed_unit<T>(find_unit<T>(group.panel(p), c.units.begin + u),
                             work.ready[u * P + p]);
    }
  }
  const uint8_t* from = weights_from<T>(group, rows.k, c.units.begin + 2 * amx_units);
  lines_evenly coming[P];
  for (uint32_t p = 0; p < P; p++) {
    coming[p] = {from + p * group.stride, units * unit_bytes(T), 2 * units * tiles};
  }
  bool last = c.ends && c.segment + 1 == part.segment_end;
  constexpr size_t scales_step = P * sizeof(prepared_unit<T>) / sizeof(lanes);
  for_tiles<amx_rows>(rows, [&](const row_tile& tile) {
    const x_unit* x = tile.x + size_t{c.units.begin - rows.k.begin} * tile.step;
    if (last) fetch_tile(part, group, tile.begin, tile.count);
    multiply_tile<T, P>(units, tile, x, coming, work);
    for (uint32_t p = 0; p < P; p++) {
      const x_unit* next_x = x;  // a rank's part of K may be empty
      if (units != 0) next_x += tile.step * rows.layout.units + p * tile.step / amx_panels;
      multiplied_units m{work.products + p, &work.ready[p].scale, x, next_x, P, scales_step,
                         tile.step};
      uint32_t at = tile.before * P + p * tile.count;
      add_some_products<T>(tile.count, c, m, at, coming[p], work.tree);
    }
    if (last) {
      const lanes* sums = work.tree.joined(c.segment, tile.before * P);
      store_tile(part, group, tile.begin, tile.count, sums);
    }
  });
}

/// P panels times a block of rows.
template <dtype T, uint32_t P>
void multiply_amx_block(const matrix& w, const product_part& part, const panel_group& group,
                        const row_block& rows, amx_work<T>& work) {
  for_chunks<T>(w, part, amx_units,
                [&](const chunk& c) { add_amx_chunk<T, P>(part, group, c, rows, work); });
}

template <dtype T>
void multiply_in_tiles(const matrix& w, const product_part& part, const activations& x, float* y,
                       size_t y_stride) {
  constexpr uint32_t P = amx_panels;
  row_block rows = all_rows<T>(w, part, x, amx_rows);
  part_panels<T> all(w, part, y, y_stride);
  alignas(64) amx_work<T> work(part, rows.layout.tile);
  static_assert(sizeof work + 4096 <= kernel_stack_bytes);
  uint32_t most = amx_block_rows / rows.layout.tile * rows.layout.tile;
  for (uint32_t first = all.begin; first < all.end; first += amx_near_panels) {
    uint32_t end = least_of(first + amx_near_panels, all.end);
    for (rows.begin = 0; rows.begin < x.rows; rows.begin = rows.end) {
      rows.end = least_of(rows.begin + most, x.rows);
      uint32_t p = first;
      for (; p + P <= end; p += P)
        multiply_amx_block<T, P>(w, part, all.group(p, 1, P), rows, work);
      for (; p < end; p++) multiply_amx_block<T, 1>(w, part, all.group(p, 1, 1), rows, work);
    }
  }
}

/// Fewer rows of numbers of 8 bits take weights out of memory as fast vector by vector: a tile of
/// few rows costs what a full one does.
inline constexpr uint32_t amx_least_rows = 19;

/// Few rows are multiplied as without tiles, and numbers of 6 bits, which have two scales a unit.
template <weight_ways ways>
void matmul_amx(const matrix& w, const product_part& part, const activations& x, float* y,
                size_t y_stride) {
  static_assert(few_rows <= x_few_rows, "they lie alike however high tiles are");
  if (is_float(w.type) || x.rows <= few_rows) return matmul<ways>(w, part, x, y, y_stride);
  if (part.row_begin >= part.row_end || part.segment_begin >= part.segment_end) return;
  switch (w.type) {
    case dtype::q8_0:
      if (x.rows >= amx_least_rows) return multiply_in_tiles<dtype::q8_0>(w, part, x, y, y_stride);
      return multiply_quant<dtype::q8_0, ways>(w, part, x, y, y_stride, amx_rows);
    case dtype::q4_0:
      return multiply_in_tiles<dtype::q4_0>(w, part, x, y, y_stride);
    case dtype::q4_1:
      return multiply_in_tiles<dtype::q4_1>(w, part, x, y, y_stride);
    case dtype::q5_0:
      return multiply_in_tiles<dtype::q5_0>(w, part, x, y, y_stride);
    case dtype::q5_1:
      return multiply_in_tiles<dtype::q5_1>(w, part, x, y, y_stride);
    case dtype::q4_k:
      return multiply_in_tiles<dtype::q4_k>(w, part, x, y, y_stride);
    case dtype::q5_k:
      return multiply_in_tiles<dtype::q5_k>(w, part, x, y, y_stride);
    default:
      return multiply_quant<dtype::q6_k, ways>(w, part, x, y, y_stride, amx_rows);
  }
}

}  // namespace
}  // namespace lethe
