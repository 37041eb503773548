// Products with f32, f16 and bf16 weights.

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu_row.hpp"
#include "kernels/kernel_stack.hpp"

namespace lethe {
namespace {

/// Weights that are ready, of numbers that Terms multiplies (of_floats).
template <class Terms, cache into = cache::none>
struct ready_weights : Terms {
  static constexpr cache asked_into = into;
  static constexpr uint32_t bytes = 64;  // of one step along K of a panel
  static lanes at(const uint8_t* p) { return load((const float*)p); }
};
/// `into`: the cache that they are asked for into.
template <cache into>
using f32_weights = ready_weights<of_floats, into>;
template <cache into>
struct f16_weights : of_floats {
  static constexpr cache asked_into = into;
  static constexpr uint32_t bytes = 32;
  static lanes at(const uint8_t* p) { return from_f16((const uint16_t*)p); }
};
template <cache into>
struct bf16_weights : of_floats {
  static constexpr cache asked_into = into;
  static constexpr uint32_t bytes = 32;
  static lanes at(const uint8_t* p) { return from_bf16((const uint16_t*)p); }
};

/// Whether a block takes weights from where they lie.
template <class Weights>
constexpr bool is_ready = false;
template <class Terms, cache into>
constexpr bool is_ready<ready_weights<Terms, into>> = true;

/// Where segment s begins, in the steps that weights take along K.
template <class Weights>
inline uint32_t first_step(const matrix& w, uint32_t s) {
  return segment_begin(w.type, w.cols, s) / Weights::columns;
}

/// Steps along a segment of K: weights of neighbouring panels and rows of x. Strides in bytes and
/// floats.
struct float_stretch {
  const uint8_t* w;
  size_t w_stride;
  const float* x;
  size_t x_stride;
  uint32_t count;
};

/// sums[p * R + r] goes on with the first step, for P panels and R rows of x.
template <class Weights, uint32_t P, uint32_t R>
[[gnu::always_inline]] inline void add_step(const float_stretch& s, lanes* sums) {
  lanes w[P];
#pragma GCC unroll 4
  for (uint32_t p = 0; p < P; p++) w[p] = Weights::at(s.w + p * s.w_stride);
#pragma GCC unroll 12
  for (uint32_t r = 0; r < R; r++) {
    lanes x = set1(s.x[r * s.x_stride]);
#pragma GCC unroll 4
    for (uint32_t p = 0; p < P; p++) sums[p * R + r] = Weights::add(w[p], x, sums[p * R + r]);
  }
}

/// Rows of x whose sums stay in registers along so many panels.
inline constexpr uint32_t float_tile_rows = 6;
template <uint32_t P>
constexpr uint32_t most_rows_by = P > tile_panels    ? one_row_panels / P
                                  : P == tile_panels ? float_tile_rows
                                                     : 2 * float_tile_rows;

/// P panels straight from memory times R rows of x. `Ask`: for the weights that come.
template <class Weights, uint32_t P, uint32_t R, bool Ask>
[[gnu::noinline]] void multiply_few_floats(const matrix& w, const product_part& part,
                                           const panel_group& group, const float* x,
                                           size_t x_stride) {
  alignas(64) segment_tree<P * R> tree(part.segment_begin, part.segment_end);
  uint32_t origin = first_step<Weights>(w, part.segment_begin);
  for (uint32_t i = part.segment_begin; i < part.segment_end; i++) {
    uint32_t begin = first_step<Weights>(w, i), end = first_step<Weights>(w, i + 1);
    float_stretch s{group.first + size_t{begin} * Weights::bytes, group.stride,
                    x + (begin - origin), x_stride, end - begin};
    lanes sums[P * R];
#pragma GCC unroll 32
    for (uint32_t j = 0; j < P * R; j++) sums[j] = zero();
    for (; s.count > 0; s.count--, s.w += Weights::bytes, s.x++) {
      add_step<Weights, P, R>(s, sums);
#pragma GCC unroll 4
      for (uint32_t p = 0; Ask && p < P; p++)
        fetch_ahead<Weights::asked_into>(s.w + p * s.w_stride);
    }
    tree.template join<P * R>(i, 0, sums);
    lanes* to = tree.joined(i, 0);
#pragma GCC unroll 32
    for (uint32_t j = 0; j < P * R; j++) to[j] = sums[j];
  }
  store_tile(part, group, 0, R, tree.sums(part.segment_end - 1, 0));
}

/// multiply_few_floats for 1 to R rows.
template <class Weights, uint32_t P, uint32_t R = most_rows_by<P>>
void multiply_float_tile(const matrix& w, const product_part& part, const panel_group& group,
                         const activations& x, bool ask) {
  if constexpr (R > 1) {
    if (x.rows < R) return multiply_float_tile<Weights, P, R - 1>(w, part, group, x, ask);
  }
  if (ask) return multiply_few_floats<Weights, P, R, true>(w, part, group, x.f, x.stride);
  multiply_few_floats<Weights, P, R, false>(w, part, group, x.f, x.stride);
}

/// The same, tile after tile; all but the first find the weights in a cache.
template <class Weights, uint32_t P>
void multiply_float_tiles(const matrix& w, const product_part& part, panel_group group,
                          const activations& x, bool ask) {
  uint32_t height = equal_parts(x.rows, most_rows_by<P>);
  activations tile = x;
  for (uint32_t r = 0; r < x.rows; r += height) {
    tile.rows = least_of(height, x.rows - r);
    multiply_float_tile<Weights, P>(w, part, group, tile, ask && r == 0);
    tile.f += height * x.stride;
    group.y += height * group.y_stride;
  }
}

/// Many rows go in blocks: all tiles of a block take a step of K while its weights,
/// up to 32 KiB as floats, are in the nearest cache.
inline constexpr uint32_t float_block_tiles = 22, float_step = 128;

template <uint32_t P>
struct float_work {
  float_work(const product_part& part) : tree(part.segment_begin, part.segment_end) {}
  segment_tree<P * float_block_tiles * float_tile_rows> tree;  // tile after tile, [panel][row]
  float w[P][float_step * panel_rows];
};

/// A step, and whether its segment begins and ends with it.
struct float_chunk {
  uint32_t segment;
  bool begins, ends;
};

/// The next tile has the rows of x after these R: every fourth of them, and up to three more, is
/// asked for, another quarter each time, so that in 16 columns, as many as a line holds, all are.
template <uint32_t R>
[[gnu::always_inline]] inline void ask_for_rows_after(const float_stretch& s) {
  for (uint32_t r = 0; r < R; r += 4)
    __builtin_prefetch(s.x + (R + r + s.count / 4 % 4) * s.x_stride);
}

/// P panels, weights that are near and ready, times R rows of a block from `row` on.
template <class Terms, uint32_t P, uint32_t R>
[[gnu::noinline]] void add_float_tile(const product_part& part, const panel_group& group,
                                      const float_chunk& c, const float_stretch& s, uint32_t row,
                                      lines_evenly& coming, float_work<P>& work) {
  using weights = ready_weights<Terms>;
  bool last = c.ends && c.segment + 1 == part.segment_end;
  if (last) fetch_tile(part, group, row, R);
  lanes* waiting = work.tree.sums(c.segment, row * P);
  const lanes* before = c.begins ? no_sums : waiting;
  lanes sums[P * R];
#pragma GCC unroll 32
  for (uint32_t i = 0; i < P * R; i++) sums[i] = before[i];
  float_stretch rest = s;
  while (rest.count >= 4) {
    coming.step<cache::first, P>();
    ask_for_rows_after<R>(rest);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++, rest.w += weights::bytes, rest.x++)
      add_step<weights, P, R>(rest, sums);
    rest.count -= 4;
  }
#pragma GCC unroll 1
  for (; rest.count > 0; rest.count--, rest.w += weights::bytes, rest.x++)
    add_step<weights, P, R>(rest, sums);
  if (c.ends) {
    work.tree.template join<P * R>(c.segment, row * P, sums);
    waiting = work.tree.joined(c.segment, row * P);
  }
#pragma GCC unroll 32
  for (uint32_t i = 0; i < P * R; i++) waiting[i] = sums[i];
  if (last) store_tile(part, group, row, R, waiting);
}

/// add_float_tile for 1 to R rows.
template <class Terms, uint32_t P, uint32_t R = float_tile_rows>
void add_float_rows(const product_part& part, const panel_group& group, const float_chunk& c,
                    const float_stretch& s, uint32_t row, uint32_t rows, lines_evenly& coming,
                    float_work<P>& work) {
  if constexpr (R > 1) {
    if (rows < R)
      return add_float_rows<Terms, P, R - 1>(part, group, c, s, row, rows, coming, work);
  }
  add_float_tile<Terms, P, R>(part, group, c, s, row, coming, work);
}

/// A step of K for a block. `next` is where the first panel's weights after it lie.
template <class Weights, uint32_t P>
void add_float_step(const product_part& part, const panel_group& group, const float_chunk& c,
                    const float_stretch& s, uint32_t rows, const uint8_t* next,
                    float_work<P>& work) {
  float_stretch near = s;
  if constexpr (!is_ready<Weights>) {
    for (uint32_t p = 0; p < P; p++) {
      for (uint32_t k = 0; k < s.count; k++)
        store(work.w[p] + k * panel_rows, Weights::at(s.w + p * s.w_stride + k * Weights::bytes));
    }
    near.w = (const uint8_t*)work.w;
    near.w_stride = sizeof work.w[0];
  }
  uint32_t height = equal_parts(rows, float_tile_rows);
  uint32_t tiles = (rows + height - 1) / height;
  lines_evenly coming(next, s.count * Weights::bytes, tiles * (s.count / 4), group.stride);
  for (uint32_t r = 0; r < rows; r += height) {
    near.x = s.x + r * s.x_stride;
    add_float_rows<typename Weights::terms, P>(part, group, c, near, r, least_of(height, rows - r),
                                               coming, work);
  }
}

/// P panels times a block of rows.
template <class Weights, uint32_t P>
void multiply_float_block(const matrix& w, const product_part& part, const panel_group& group,
                          const activations& x, float_work<P>& work) {
  uint32_t origin = first_step<Weights>(w, part.segment_begin);
  for (uint32_t i = part.segment_begin; i < part.segment_end; i++) {
    uint32_t first = first_step<Weights>(w, i), k = first;
    uint32_t after = first_step<Weights>(w, i + 1);
    do {
      uint32_t count = least_of(after - k, float_step);
      float_stretch s{group.first + size_t{k} * Weights::bytes, group.stride, x.f + (k - origin),
                      x.stride, count};
      float_chunk c{i, k == first, k + count == after};
      // Behind K come the next panels.
      bool more = !c.ends || i + 1 < part.segment_end;
      const uint8_t* next = more ? s.w + size_t{count} * Weights::bytes
                                 : group.panel(P) + size_t{origin} * Weights::bytes;
      add_float_step<Weights, P>(part, group, c, s, x.rows, next, work);
      k += count;
    } while (k < after);
  }
}

/// P panels times all rows, in blocks as equal as whole tiles allow.
template <class Weights, uint32_t P>
void multiply_float_blocks(const matrix& w, const product_part& part, panel_group group,
                           const activations& x) {
  alignas(64) float_work<P> work(part);
  static_assert(sizeof work + 4096 <= kernel_stack_bytes);
  uint32_t tiles = (x.rows + float_tile_rows - 1) / float_tile_rows;
  uint32_t rows = equal_parts(tiles, float_block_tiles) * float_tile_rows;
  activations block = x;
  for (uint32_t r = 0; r < x.rows; r += rows) {
    block.rows = least_of(rows, x.rows - r);
    multiply_float_block<Weights, P>(w, part, group, block, work);
    block.f += rows * x.stride;
    group.y += rows * group.y_stride;
  }
}

/// Calls f for groups of P panels, and for what is left one by one.
template <class Weights, uint32_t P, class F>
inline void for_float_groups(const matrix& w, const product_part& part, float* y, size_t y_stride,
                             F f) {
  size_t stride = (size_t{w.cols} / Weights::columns * Weights::bytes + 63) / 64 * 64;
  auto group_of = [&](uint32_t p, uint32_t count) {
    return panel_group{(const uint8_t*)w.panels + p * stride, stride, p, 1, count, y, y_stride};
  };
  uint32_t p = part.row_begin / panel_rows, end = (part.row_end + panel_rows - 1) / panel_rows;
  for (; p + P <= end; p += P) f.template operator()<P>(group_of(p, P));
  for (; p < end; p++) f.template operator()<1>(group_of(p, 1));
}

/// Rows that go straight along the weights: a tile's, and more where weights of 16 bits would have
/// to be made ready first.
template <class Weights>
constexpr uint32_t direct_rows = is_ready<Weights> ? most_rows_by<(tile_panels + 1) / 2> : 24;

/// One row or two leave registers for more panels, which are read in as many streams; more rows
/// than a tile's go along fewer panels. `ask`: for the weights that come; for those of blocks
/// always.
template <class Weights>
void multiply_float(const matrix& w, const product_part& part, const activations& x, float* y,
                    size_t y_stride, bool ask) {
  constexpr uint32_t half = (tile_panels + 1) / 2;
  constexpr uint32_t two = one_row_panels / 2 > tile_panels ? one_row_panels / 2 : tile_panels;
  auto few = [&]<uint32_t P>(const panel_group& group) {
    multiply_float_tiles<Weights, P>(w, part, group, x, ask);
  };
  auto many = [&]<uint32_t P>(const panel_group& group) {
    multiply_float_blocks<Weights, P>(w, part, group, x);
  };
  if (x.rows == 0) return;
  if (x.rows == 1) return for_float_groups<Weights, one_row_panels>(w, part, y, y_stride, few);
  if (x.rows == 2) return for_float_groups<Weights, two>(w, part, y, y_stride, few);
  if (x.rows <= float_tile_rows)
    return for_float_groups<Weights, tile_panels>(w, part, y, y_stride, few);
  if (x.rows <= direct_rows<Weights>)
    return for_float_groups<Weights, half>(w, part, y, y_stride, few);
  for_float_groups<Weights, tile_panels>(w, part, y, y_stride, many);
}

}  // namespace
}  // namespace lethe
