// Products with bf16 weights in registers of tiles (amx_registers.hpp), of x that is rounded to
// bf16, too. Of 32 columns those at even places are summed from zero, one after the other, and
// those at odd ones beside them; then both are added, and to what the segment has so far. Denormal
// numbers are zeros. That is what a tile does; few rows do it vector by vector.

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/bf16_tiles.inl"
#include "kernels/cpu/denormals.hpp"
#include "kernels/cpu_row.hpp"
#include "kernels/kernel_stack.hpp"
#include "kernels/panels.hpp"

namespace lethe {
namespace {

/// A unit: 32 columns of a panel, and of a row of x.
inline constexpr uint32_t bf16_unit_bytes = unit_columns * panel_rows * sizeof(uint16_t);
/// Two columns of a panel's rows side by side, as tiles want them.
struct paired_unit {
  uint16_t w[unit_columns / 2][2 * panel_rows];
};
/// Rows of x in a tile and in a block, panels beside each other, units that are made ready at once,
/// and panels that stay in the second cache until all blocks of x have had them.
inline constexpr uint32_t bf16_rows = 16, bf16_block_rows = 8 * bf16_rows, bf16_panels = 2;
inline constexpr uint32_t bf16_units = 4, bf16_near_panels = 8;
/// So many numbers of a panel before they are made ready they are asked for.
inline constexpr uint32_t bf16_ahead = 2048;
using bf16_sums = segment_tree<bf16_block_rows * bf16_panels>;  // [tile][panel][bf16_rows]

/// Asks for what comes a while later, too.
inline void pair_columns(const uint8_t* unit, paired_unit& to) {
  const uint16_t* columns = (const uint16_t*)unit;
#pragma GCC unroll 16
  for (auto& pair : to.w) {
    __builtin_prefetch(columns + bf16_ahead, 0, 2);
    interleave_bf16(columns, pair);
    columns += 2 * panel_rows;
  }
}

/// Units of K that a part has, counted from its first, and where their weights lie. All segments
/// have as many.
struct bf16_part {
  const matrix& w;
  const product_part& part;
  uint32_t units_of_segment() const { return w.cols / segments / unit_columns; }
  uint32_t units() const { return (part.segment_end - part.segment_begin) * units_of_segment(); }
  /// Of the group's first panel.
  const uint8_t* unit(const panel_group& group, uint32_t u) const {
    return group.first + (size_t{part.segment_begin} * units_of_segment() + u) * bf16_unit_bytes;
  }
};

/// Rows of x that lie together: unit u of row begin + r is x[u * count + r].
struct rounded_tile {
  const x_rounded* x;
  uint32_t begin, count;
};
inline rounded_tile rounded_tile_at(const x_rounded* x, const x_layout& layout, uint32_t row) {
  return {x + size_t{row} * layout.units, row, rows_of_tile(layout, row)};
}

/// One unit's sums on top of `sums`, [panel][row].
template <uint32_t P, uint32_t R>
[[gnu::always_inline]] inline void add_bf16_unit(const uint8_t* unit, size_t stride,
                                                 const x_rounded* x, lanes* sums) {
  lanes even[P * R], odd[P * R];
#pragma GCC unroll 16
  for (uint32_t i = 0; i < P * R; i++) even[i] = odd[i] = zero();
#pragma GCC unroll 1
  for (uint32_t k = 0; k < unit_columns; k += 2) {
    lanes first[P], second[P];
#pragma GCC unroll 4
    for (uint32_t p = 0; p < P; p++) {
      const uint8_t* at = unit + p * stride;
      first[p] = from_bf16((const uint16_t*)at);
      second[p] = from_bf16((const uint16_t*)at + panel_rows);
      fetch_ahead<cache::first>(at);
    }
    unit += 2 * panel_rows * sizeof(uint16_t);
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; r++) {
      lanes a, b;
      both_bf16(x[r].n + k, a, b);
#pragma GCC unroll 4
      for (uint32_t p = 0; p < P; p++) {
        even[p * R + r] = fma(first[p], a, even[p * R + r]);
        odd[p * R + r] = fma(second[p], b, odd[p * R + r]);
      }
    }
  }
#pragma GCC unroll 16
  for (uint32_t i = 0; i < P * R; i++) sums[i] = add(sums[i], add(even[i], odd[i]));
}

/// A segment's sums, with denormals as in tiles; segments join as everywhere.
template <uint32_t P, uint32_t R>
[[gnu::noinline]] void sum_bf16_segment(const uint8_t* unit, size_t stride, uint32_t units,
                                        const x_rounded* x, lanes* to) {
  denormals_are_zeros mode;
  lanes sums[P * R];
#pragma GCC unroll 16
  for (lanes& sum : sums) sum = zero();
  for (uint32_t u = 0; u < units; u++, unit += bf16_unit_bytes, x += R)
    add_bf16_unit<P, R>(unit, stride, x, sums);
#pragma GCC unroll 16
  for (uint32_t i = 0; i < P * R; i++) to[i] = sums[i];
}

/// P panels times R rows, vector by vector.
template <uint32_t P, uint32_t R>
void multiply_bf16_rows(const bf16_part& k, const panel_group& group, const x_rounded* x) {
  const product_part& part = k.part;
  alignas(64) segment_tree<P * R> tree(part.segment_begin, part.segment_end);
  const uint8_t* unit = k.unit(group, 0);
  uint32_t units = k.units_of_segment();
  for (uint32_t s = part.segment_begin; s < part.segment_end; s++) {
    sum_bf16_segment<P, R>(unit, group.stride, units, x, tree.sums(s, 0));
    tree.close(s, 0, P * R);
    unit += size_t{units} * bf16_unit_bytes, x += size_t{units} * R;
  }
  store_tile(part, group, 0, R, tree.sums(part.segment_end - 1, 0));
}

/// So many rows are faster vector by vector.
inline constexpr uint32_t bf16_few_rows = 6;
/// Panels whose even and odd sums of all rows stay in registers.
constexpr uint32_t bf16_panels_by(uint32_t rows) { return rows == 1 ? 4 : 2; }

struct bf16_work {
  explicit bf16_work(const product_part& part) : tree(part.segment_begin, part.segment_end) {}
  bf16_sums tree;
  paired_unit ready[2][bf16_units * bf16_panels];  // of a chunk and of the next, [unit][panel]
  tile_registers tiles{bf16_rows, sizeof(x_rounded)};
};

/// Some units of a segment, counted from the part's first.
struct bf16_chunk {
  uint32_t segment, begin, count;
  bool begins, ends;
};
inline bf16_chunk bf16_chunk_at(const bf16_part& k, uint32_t unit) {
  uint32_t each = k.units_of_segment(), within = unit % each;
  uint32_t count = least_of(each - within, bf16_units);
  return {k.part.segment_begin + unit / each, unit, count, within == 0, within + count == each};
}

/// Units of P panels that are made ready, one after the other, beside other work.
template <uint32_t P>
struct pairing {
  const uint8_t* from;
  size_t stride;
  paired_unit* to;
  [[gnu::always_inline]] void step() {
#pragma GCC unroll 2
    for (uint32_t p = 0; p < P; p++) pair_columns(from + p * stride, *to++);
    from += bf16_unit_bytes;
  }
};

/// The units of a chunk times T tiles of x, for sums that lie [tile][panel][row]. Meanwhile `units`
/// of those that come next are made ready.
template <uint32_t T, uint32_t P>
[[gnu::noinline]] void multiply_bf16_tiles(tile_registers& tiles, const bf16_chunk& c,
                                           const paired_unit* ready, const rounded_tile* x,
                                           lanes* sums, pairing<P>& next, uint32_t units) {
  multiply_bf16_units<T, P>(
      tiles, c.count, c.begins,
      [&](uint32_t t, uint32_t p) __attribute__((always_inline)) {
        return tile_sums{(float*)(sums + (t * P + p) * bf16_rows), sizeof(lanes)};
      },
      sizeof(x_rounded),
      [&](uint32_t t, uint32_t u)
          __attribute__((always_inline)) { return x[t].x + size_t{c.begin + u} * x[t].count; },
      [&](uint32_t p, uint32_t u) __attribute__((always_inline)) { return ready[u * P + p].w; },
      [&](uint32_t u) __attribute__((always_inline)) {
        if (u < units) next.step();
      });
  for (uint32_t u = c.count; u < units; u++) next.step();
}

template <uint32_t P>
inline void store_bf16_tile(const product_part& part, const panel_group& group,
                            const rounded_tile& rows, const lanes* sums) {
  float* y = group.y + rows.begin * group.y_stride;
  for (uint32_t r = 0; r < rows.count; r++, y += group.y_stride) {
    for (uint32_t p = 0; p < P; p++) store_panel(part, group.begin + p, sums[p * bf16_rows + r], y);
  }
}

/// P panels times the rows [begin, end) of x, whole tiles. A chunk is multiplied while the next is
/// made ready.
template <uint32_t P>
void multiply_bf16_block(const bf16_part& k, const panel_group& group, const x_rounded* x,
                         const x_layout& layout, uint32_t begin, uint32_t end, bf16_work& work) {
  rounded_tile rows[bf16_block_rows / bf16_rows];
  uint32_t count = 0, all = k.units();
  for (uint32_t r = begin; r < end; r += layout.tile) rows[count++] = rounded_tile_at(x, layout, r);
  uint32_t pairs = (count + 1) / 2, turn = 0;
  auto ready_from = [&](uint32_t unit) {
    return pairing<P>{k.unit(group, unit), group.stride, work.ready[turn]};
  };
  bf16_chunk c = bf16_chunk_at(k, 0), after;
  pairing<P> first = ready_from(0);
  for (uint32_t u = 0; u < c.count; u++) first.step();
  for (uint32_t at = 0; at < all; at += c.count, c = after) {
    const paired_unit* ready = work.ready[turn];
    turn ^= 1;
    uint32_t then = at + c.count;
    after = then < all ? bf16_chunk_at(k, then) : bf16_chunk{};
    pairing<P> next = ready_from(then);
    for (uint32_t i = 0; i < count; i += 2) {
      uint32_t units = after.count * (i / 2 + 1) / pairs - after.count * (i / 2) / pairs;
      lanes* sums = work.tree.sums(c.segment, i * P * bf16_rows);
      if (then == all) {
        for (uint32_t t = i; t < least_of(i + 2, count); t++)
          fetch_tile(k.part, group, rows[t].begin, rows[t].count);
      }
      if (i + 1 < count)
        multiply_bf16_tiles<2, P>(work.tiles, c, ready, rows + i, sums, next, units);
      else
        multiply_bf16_tiles<1, P>(work.tiles, c, ready, rows + i, sums, next, units);
    }
    if (c.ends) work.tree.close(c.segment, 0, count * P * bf16_rows);
  }
  const lanes* sums = work.tree.sums(k.part.segment_end - 1, 0);
  for (uint32_t i = 0; i < count; i++, sums += P * bf16_rows)
    store_bf16_tile<P>(k.part, group, rows[i], sums);
}

[[gnu::noinline]] void multiply_bf16_blocks(const bf16_part& k, const activations& x, float* y,
                                            size_t y_stride) {
  constexpr uint32_t P = bf16_panels;
  alignas(64) bf16_work work(k.part);
  static_assert(sizeof work + 4096 <= kernel_stack_bytes);
  x_layout layout = layout_of_x(x.rows, k.units(), bf16_rows);
  uint32_t most = bf16_block_rows / bf16_rows * layout.tile;
  uint32_t begin = k.part.row_begin / panel_rows;
  uint32_t end = (k.part.row_end + panel_rows - 1) / panel_rows;
  size_t stride = size_t{k.w.cols} * panel_rows * sizeof(uint16_t);
  auto group = [&](uint32_t p, uint32_t count) {
    const uint8_t* first = (const uint8_t*)k.w.panels + p * stride;
    return panel_group{first, stride, p, 1, count, y, y_stride};
  };
  for (uint32_t near = begin, near_end; near < end; near = near_end) {
    near_end = least_of(near + bf16_near_panels, end);
    for (uint32_t r = 0; r < x.rows; r += most) {
      uint32_t rows_end = least_of(r + most, x.rows), p = near;
      for (; p + P <= near_end; p += P)
        multiply_bf16_block<P>(k, group(p, P), x.rounded, layout, r, rows_end, work);
      for (; p < near_end; p++)
        multiply_bf16_block<1>(k, group(p, 1), x.rounded, layout, r, rows_end, work);
    }
  }
}

/// Few rows, of 1 to R.
template <uint32_t R = bf16_few_rows>
void multiply_few_bf16(const bf16_part& k, const activations& x, float* y, size_t y_stride) {
  if constexpr (R > 1) {
    if (x.rows < R) return multiply_few_bf16<R - 1>(k, x, y, y_stride);
  }
  for_float_groups<bf16_weights<cache::none>, bf16_panels_by(R)>(
      k.w, k.part, y, y_stride,
      [&]<uint32_t P>(const panel_group& group) { multiply_bf16_rows<P, R>(k, group, x.rounded); });
}

template <weight_ways ways>
void matmul_tensor(const matrix& w, const product_part& part, const activations& x, float* y,
                   size_t y_stride) {
  if (!takes_rounded(amx_tensor, w)) return matmul_amx<ways>(w, part, x, y, y_stride);
  if (part.row_begin >= part.row_end || part.segment_begin >= part.segment_end) return;
  if (x.rows == 0) return;
  bf16_part k{w, part};
  x.rows <= bf16_few_rows ? multiply_few_bf16(k, x, y, y_stride)
                          : multiply_bf16_blocks(k, x, y, y_stride);
}

inline void round_rows(const float* x, uint32_t rows, uint32_t cols, size_t begin, size_t end,
                       x_rounded* to) {
  x_layout layout = layout_of_x(rows, cols / unit_columns, bf16_rows);
  for (; begin < end; begin += unit_columns) {
    uint32_t r = uint32_t(begin / cols), u = uint32_t(begin % cols / unit_columns);
    round_to_bf16(load(x + begin), load(x + begin + 16), to[place_of_unit(layout, r, u)].n);
  }
}

}  // namespace
}  // namespace lethe
