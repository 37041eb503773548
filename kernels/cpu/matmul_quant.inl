// Products with quantized weights: integers within a unit of 32 columns, floats between units.

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "kernels/cpu_row.hpp"
#include "kernels/kernel_stack.hpp"
#include "kernels/panels.hpp"

namespace lethe {
namespace {

/// Units [begin, end) of K, counted from the matrix's first.
struct unit_range {
  uint32_t begin, end;
  uint32_t size() const { return end - begin; }
};

/// Few rows of x (few_rows) go straight along the weights, of several panels by turns: memory is
/// read fastest in a few streams. More rows go in blocks, tile by tile, along units that were made
/// ready before and stay in the nearest cache.
inline constexpr uint32_t stream_panels = 4;
inline constexpr uint32_t most_rows = 132, ready_units = 8;
/// Few rows leave no time to wait for the next weights: these and the ones at work have to fit the
/// first cache, of 32 KiB in many processors.
template <dtype T, class Unit>
constexpr uint32_t units_at_once(uint32_t rows) {
  constexpr bool small = std::is_same_v<Unit, unit_in_memory<T>> && T != dtype::q8_0;
  return rows > 24 || small ? ready_units : ready_units / 2;
}

using waiting_sums = segment_tree<most_rows * tile_panels_quant>;  // tile after tile, [panel][row]

template <class Unit>
struct quant_work {
  quant_work(const product_part& part) : tree(part.segment_begin, part.segment_end) {}
  waiting_sums tree;
  Unit ready[ready_units * tile_panels_quant];  // [unit][panel]
};

/// Rows [begin, end) of x, whole tiles, whose first unit is K's unit `k.begin`.
struct row_block {
  const x_unit* x;
  x_layout layout;
  unit_range k;
  uint32_t begin, end;
  uint32_t size() const { return end - begin; }
};

/// Rows of x from `begin` on that go through the registers together: unit k.begin + u of row
/// begin + r is x[u * step + r]. `before` rows of the block come before them.
struct row_tile {
  const x_unit* x;
  uint32_t step, begin, count, before;
};

/// Each tile of x in parts, as equal as can be, of `most` rows at most.
template <uint32_t most, class F>
inline void for_tiles(const row_block& rows, F f) {
  for (uint32_t r = rows.begin; r < rows.end; r += rows.layout.tile) {
    const x_unit* x = rows.x + size_t{r} * rows.layout.units;
    uint32_t step = rows_of_tile(rows.layout, r), height = equal_parts(step, most);
    for (uint32_t i = 0; i < step; i += height) {
      const x_unit* first = x == nullptr ? x : x + i;  // a rank's part of K may be empty
      f(row_tile{first, step, r + i, least_of(height, step - i), r + i - rows.begin});
    }
  }
}

/// Units of K that segment s has.
template <dtype T>
inline unit_range units_of(const matrix& w, uint32_t s) {
  return {segment_begin(T, w.cols, s) / unit_columns,
          segment_begin(T, w.cols, s + 1) / unit_columns};
}

/// Unit u of P panels from memory, times R rows.
template <dtype T, uint32_t P, uint32_t R, cache into>
[[gnu::always_inline]] inline void add_from_memory(const panel_group& group, uint32_t first,
                                                   uint32_t u, const x_unit* x, const lanes* before,
                                                   lanes* sums) {
  passing_unit<T> units[P];
  const passing_unit<T>* all[P];
  // Else the compiler keeps what panels share of x, and has no registers left for sums.
  if constexpr (R > 4) asm volatile("" : "+r"(x));
#pragma GCC unroll 4
  for (uint32_t p = 0; p < P; p++) {
    unit_place at = find_unit<T>(group.panel(first + p), u);
    for (uint32_t i = 0; i < unit_bytes(T); i += 64) fetch_ahead<into>(at.unit + i);
    prepare_unit<T>(at, units[p]);
    all[p] = units + p;
  }
  before += first * R;
  sums += first * R;
  if constexpr (R <= rows_together) {
    add_unit<T, P, R>(all, x, before, sums);
  } else {
    static_assert(P == 1 && R <= 2 * rows_together);
    constexpr uint32_t half = R / 2;
    add_unit<T, P, half>(all, x, before, sums);
    asm volatile("" : "+r"(x));  // as above
    add_unit<T, P, R - half>(all, x + half, before + half, sums + half);
  }
}

/// A few panels times a tile of R rows: of each panel a unit, then of each the next.
template <dtype T, uint32_t R, cache into>
[[gnu::noinline]] void multiply_streams(const matrix& w, const product_part& part,
                                        const panel_group& group, unit_range k,
                                        const row_tile& tile, waiting_sums& waiting) {
  constexpr uint32_t P = panels_from_memory(R);
  static_assert(stream_panels * R <= sizeof no_sums / sizeof *no_sums);
  uint32_t count = group.count * R;
  for (uint32_t s = part.segment_begin; s < part.segment_end; s++) {
    lanes* sums = waiting.sums(s, 0);
    const lanes* before = no_sums;
    unit_range units = units_of<T>(w, s);
    for (uint32_t u = units.begin; u < units.end; u++) {
      const x_unit* x = tile.x + size_t{u - k.begin} * R;
      uint32_t p = 0;
      for (; p + P <= group.count; p += P)
        add_from_memory<T, P, R, into>(group, p, u, x, before, sums);
      if constexpr (P > 1) {
        for (; p < group.count; p++) add_from_memory<T, 1, R, into>(group, p, u, x, before, sums);
      }
      before = sums;
    }
    if (units.size() == 0) {
      for (uint32_t i = 0; i < count; i++) sums[i] = zero();
    }
    waiting.close(s, 0, count);
  }
  store_tile(part, group, tile.begin, tile.count, waiting.sums(part.segment_end - 1, 0));
}

/// multiply_streams for 1 to R rows of x. Weights whose bits lie apart are asked for in any case.
template <dtype T, weight_ways ways, uint32_t R = stream_rows>
void multiply_few(const matrix& w, const product_part& part, const panel_group& group, unit_range k,
                  const row_tile& tile, waiting_sums& waiting) {
  if constexpr (R > 1) {
    if (tile.count < R) return multiply_few<T, ways, R - 1>(w, part, group, k, tile, waiting);
  }
  constexpr cache into = unit_of(T).high_bytes != 0 ? ways.into : ways.asked_into(R);
  multiply_streams<T, R, into>(w, part, group, k, tile, waiting);
}

/// Some units of a segment.
struct chunk {
  uint32_t segment;
  unit_range units;
  bool begins, ends;  // the segment
};

/// Units of P panels that are ready, unit u of panel p at ready[u * P + p], times R rows of x.
template <dtype T, uint32_t P, uint32_t R, class Unit>
[[gnu::noinline]] void add_tile(const product_part& part, const panel_group& group, const chunk& c,
                                const row_tile& tile, const x_unit* x, lines_evenly& coming,
                                quant_work<Unit>& work) {
  bool last = c.ends && c.segment + 1 == part.segment_end;
  if (last) fetch_tile(part, group, tile.begin, tile.count);
  lanes* waiting = work.tree.sums(c.segment, tile.before * P);
  lanes sums[P * R];
#pragma GCC unroll 16
  for (uint32_t i = 0; i < P * R; i++) sums[i] = c.begins ? zero() : waiting[i];
  const Unit* ready = work.ready;
  for (uint32_t i = 0; i < c.units.size(); i++, ready += P, x += tile.step) {
    const Unit* u[P];
#pragma GCC unroll 4
    for (uint32_t p = 0; p < P; p++) u[p] = ready + p;
    coming.step<cache::first, P>();
    if constexpr (!float_sums_stay) asm("" : "+m"(sums));  // they are in memory between units
    add_unit<T, P, R>(u, x, sums, sums);
  }
  if (c.ends) {
    work.tree.template join<P * R>(c.segment, tile.before * P, sums);
    waiting = work.tree.joined(c.segment, tile.before * P);
  }
#pragma GCC unroll 16
  for (uint32_t i = 0; i < P * R; i++) waiting[i] = sums[i];
  if (last) store_tile(part, group, tile.begin, tile.count, waiting);
}

/// add_tile for 1 to R rows of x.
template <dtype T, uint32_t P, uint32_t R = tile_rows, class Unit>
void add_rows(const product_part& part, const panel_group& group, const chunk& c,
              const row_tile& tile, const x_unit* x, lines_evenly& coming, quant_work<Unit>& work) {
  if constexpr (R > 1) {
    if (tile.count < R) return add_rows<T, P, R - 1>(part, group, c, tile, x, coming, work);
  }
  add_tile<T, P, R>(part, group, c, tile, x, coming, work);
}

/// Where a group's weights from unit u on lie; behind K come the next panels.
template <dtype T>
inline const uint8_t* weights_from(const panel_group& group, unit_range k, uint32_t u) {
  return u < k.end ? begin_of_unit<T>(group.first, u)
                   : begin_of_unit<T>(group.panel(group.count), k.begin + (u - k.end));
}

/// A chunk of P panels.
template <dtype T, uint32_t P, class Unit>
void add_chunk(const product_part& part, const panel_group& group, const chunk& c,
               const row_block& rows, quant_work<Unit>& work) {
  uint32_t units = c.units.size(), steps = 0;
  for (uint32_t p = 0; p < P; p++) {
    for (uint32_t u = 0; u < units; u++) {
      prepare_unit<T>(find_unit<T>(group.panel(p), c.units.begin + u), work.ready[u * P + p]);
    }
  }
  for_tiles<tile_rows>(rows, [&](const row_tile&) { steps += units; });
  const uint8_t* next = weights_from<T>(group, rows.k, c.units.end);
  lines_evenly coming(next, units * unit_bytes(T), steps, group.stride);
  for_tiles<tile_rows>(rows, [&](const row_tile& tile) {
    const x_unit* x = tile.x + size_t{c.units.begin - rows.k.begin} * tile.step;
    add_rows<T, P>(part, group, c, tile, x, coming, work);
  });
}

/// The part's units, up to `at_once` together.
template <dtype T, class F>
inline void for_chunks(const matrix& w, const product_part& part, uint32_t at_once, F f) {
  for (uint32_t segment = part.segment_begin; segment < part.segment_end; segment++) {
    unit_range all = units_of<T>(w, segment);
    uint32_t u = all.begin;
    do {
      uint32_t end = least_of(u + at_once, all.end);
      f(chunk{segment, {u, end}, u == all.begin, end == all.end});
      u = end;
    } while (u < all.end);
  }
}

/// P panels from p on times all rows.
template <dtype T, uint32_t P, class Unit>
void multiply_blocks(const matrix& w, const product_part& part, const panel_group& group,
                     row_block rows, quant_work<Unit>& work) {
  uint32_t count = rows.end, tiles = most_rows / rows.layout.tile;
  for (rows.begin = 0; rows.begin < count; rows.begin = rows.end) {
    rows.end = least_of(rows.begin + tiles * rows.layout.tile, count);
    uint32_t at_once = units_at_once<T, Unit>(rows.size());
    for_chunks<T>(w, part, at_once,
                  [&](const chunk& c) { add_chunk<T, P>(part, group, c, rows, work); });
  }
}

/// All rows of x with the units that the part has.
template <dtype T>
inline row_block all_rows(const matrix& w, const product_part& part, const activations& x,
                          uint32_t x_together) {
  unit_range k{units_of<T>(w, part.segment_begin).begin, units_of<T>(w, part.segment_end - 1).end};
  return {x.units, layout_of_x(x.rows, k.size(), x_together), k, 0, x.rows};
}

/// The panels that have the part's outputs.
template <dtype T>
struct part_panels {
  part_panels(const matrix& w, const product_part& part, float* to, size_t to_stride)
      : begin(part.row_begin / panel_rows),
        end((part.row_end + panel_rows - 1) / panel_rows),
        first((const uint8_t*)w.panels),
        stride((size_t{w.cols / block_elements(T)} * panel_block_bytes(T) + 63) / 64 * 64),
        y(to),
        y_stride(to_stride) {}
  panel_group group(uint32_t from, uint32_t step, uint32_t count) const {
    return {first + from * stride, step * stride, from, step, count, y, y_stride};
  }
  uint32_t begin, end;
  const uint8_t* first;
  size_t stride;
  float* y;
  size_t y_stride;
};

template <dtype T, weight_ways ways>
void multiply_quant(const matrix& w, const product_part& part, const activations& x, float* y,
                    size_t y_stride, uint32_t x_together = x_tile_rows) {
  if (x.rows == 0) return;
  alignas(64) quant_work<ready_unit<T, ways.apart_beside>> work(part);
  static_assert(sizeof work + 4096 <= kernel_stack_bytes);
  constexpr uint32_t P = tile_panels_quant;
  row_block rows = all_rows<T>(w, part, x, x_together);
  part_panels<T> all(w, part, y, y_stride);
  uint32_t p = all.begin, end = all.end;
  if (x.rows > few_rows) {
    for (; p + P <= end; p += P) multiply_blocks<T, P>(w, part, all.group(p, 1, P), rows, work);
    for (; p < end; p++) multiply_blocks<T, 1>(w, part, all.group(p, 1, 1), rows, work);
    return;
  }
  auto multiply = [&](const panel_group& group) {
    for_tiles<stream_rows>(rows, [&](const row_tile& tile) {
      multiply_few<T, ways>(w, part, group, rows.k, tile, work.tree);
    });
  };
  // Each stream goes along panels that lie one behind the other.
  uint32_t length = (end - p) / stream_panels;
  for (uint32_t i = 0; i < length; i++, p++) multiply(all.group(p, length, stream_panels));
  p += (stream_panels - 1) * length;
  if (p < end) multiply(all.group(p, 1, end - p));
}

}  // namespace
}  // namespace lethe
