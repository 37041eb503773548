// Products with quantized weights: integers within a unit of 32 columns, floats between units.

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu_row.hpp"
#include "kernels/panels.hpp"

namespace lethe {
namespace {

/// Units [begin, end) of K, counted from the matrix's first.
struct unit_range {
  uint32_t begin, end;
  uint32_t size() const { return end - begin; }
};

/// Up to `stream_rows` rows of x go straight along the weights, of several panels by turns: memory
/// is read fastest in a few streams. More rows go in blocks, tile by tile, along chunks of units
/// that were made ready before, in the first cache.
inline constexpr uint32_t stream_rows = 2, stream_panels = 4;
inline constexpr uint32_t tile_block_rows = 10 * 6, group_panels = 16, chunk_units = 8;
inline constexpr uint32_t x_units = 512;

template <dtype T>
struct quant_work {
  segment_tree<tile_block_rows * group_panels> sums;  // [panel][row of x]
  prepared_unit<T> ready[tile_panels_quant][chunk_units];
  x_unit x[x_units];  // [tile of rows][unit][row of the tile]
  unit_range has;     // the units in x
};

/// Neighbouring panels.
struct panel_group {
  const uint8_t* first;
  size_t stride;
  uint32_t begin, count;
  const uint8_t* panel(uint32_t p) const { return first + p * stride; }
};

/// Some rows of x, and K's first unit in them.
struct x_rows {
  const activations& x;
  uint32_t begin, count;
  uint32_t units, origin;
};

/// Copies what products with T read of units of one row of x, whose first is unit `at` of all rows;
/// to[0], to[step], ...
template <dtype T>
inline void copy_units(const quantized_rows& x, size_t at, uint32_t count, x_unit* to,
                       uint32_t step) {
  const int8_t* q = x.q + unit_columns * at;
  const float* scales = x.scales + at;
  const int16_t* sums = x.sums + 2 * at;
  for (uint32_t u = 0; u < count; u++, to += step) {
    __builtin_memcpy(to->q, q + unit_columns * u, unit_columns);
    int32_t first = sums[2 * u], second = sums[2 * u + 1];
    float scale = scales[u];
    to->scale = scale;
    if constexpr (has_minimum<T>()) to->scaled_sum = scale * float(first + second);
    if constexpr (T == dtype::q6_k) to->sums[0] = int16_t(first), to->sums[1] = int16_t(second);
    if constexpr (offset_of<T>() != 0) to->correction = -offset_of<T>() * (first + second);
  }
}

/// The rows of a tile: all tiles of a block are as high, or one row less.
inline uint32_t tile_height(uint32_t rows) {
  uint32_t tiles = (rows + tile_rows - 1) / tile_rows;
  return (rows + tiles - 1) / tiles;
}

/// Copies units of all rows, `tile` rows side by side.
template <dtype T>
void gather(const x_rows& rows, unit_range units, uint32_t tile, quant_work<T>& work) {
  work.has = units;
  x_unit* to = work.x;
  for (uint32_t r = 0; r < rows.count; r += tile) {
    uint32_t height = least_of(tile, rows.count - r);
    for (uint32_t i = 0; i < height; i++) {
      size_t at = size_t{rows.begin + r + i} * rows.units + (units.begin - rows.origin);
      copy_units<T>(rows.x.q, at, units.size(), to + i, height);
    }
    to += height * units.size();
  }
}

template <dtype T>
inline uint32_t segment_unit(const matrix& w, uint32_t s) {
  return segment_begin(T, w.cols, s) / unit_columns;
}

/// Units that lie in one segment, from memory: of each panel one, then of each the next.
template <dtype T>
void add_streams(const panel_group& group, unit_range units, const x_unit* x, uint32_t rows,
                 lanes* sums) {
  for (uint32_t u = units.begin; u < units.end; u++, x += rows) {
    for (uint32_t p = 0; p < group.count; p++) {
      unit_place at = find_unit<T>(group.panel(p), u);
      for (uint32_t i = 0; i < unit_bytes(T); i += 64) {
        __builtin_prefetch(at.unit + fetch_ahead + i);
      }
      prepared_unit<T> unit;
      prepare_unit<T>(at, unit);
      add_rows<T, 1>({&unit}, x, rows, sums + p * rows, rows);
    }
  }
}

/// Weights that are asked for while others are multiplied: lines of P panels.
template <uint32_t P>
struct lines_ahead {
  const uint8_t* at[P];
  uint32_t a_step;  // lines of each
  void step() {
    for (uint32_t i = 0; i < a_step; i++) {
      for (uint32_t p = 0; p < P; p++) __builtin_prefetch(at[p] += 64, 0, 2);
    }
  }
};

/// P panels' units, which lie in one segment and in x. `next` is where the weights after them lie.
template <dtype T, uint32_t P>
void add_chunk(const panel_group& group, uint32_t p, unit_range units, uint32_t rows,
               const uint8_t* next, quant_work<T>& work) {
  uint32_t count = units.size(), height = tile_height(rows);
  for (uint32_t i = 0; i < P; i++) {
    for (uint32_t u = 0; u < count; u++) {
      prepare_unit<T>(find_unit<T>(group.panel(p + i), units.begin + u), work.ready[i][u]);
    }
  }
  lines_ahead<P> ahead;
  for (uint32_t i = 0; i < P; i++) ahead.at[i] = next + i * group.stride;
  uint32_t steps = (rows + height - 1) / height * count;
  ahead.a_step = (chunk_units * unit_bytes(T) / 64 + steps - 1) / steps;
  const x_unit* x = work.x;
  lanes* sums = work.sums.active + p * rows;
  for (uint32_t r = 0; r < rows; r += height) {
    uint32_t tile = least_of(height, rows - r);
    for (uint32_t u = 0; u < count; u++, x += tile) {
      const prepared_unit<T>* ready[P];
      for (uint32_t i = 0; i < P; i++) ready[i] = &work.ready[i][u];
      add_rows<T, P>(ready, x, tile, sums + r, rows);
      ahead.step();
    }
  }
}

template <dtype T>
void add_chunks(const panel_group& group, unit_range units, uint32_t rows, quant_work<T>& work) {
  constexpr uint32_t P = tile_panels_quant;
  uint32_t p = 0;
  for (; p + P <= group.count; p += P) {
    unit_place next = p + 2 * P <= group.count ? find_unit<T>(group.panel(p + P), units.begin)
                                               : find_unit<T>(group.panel(0), units.end);
    add_chunk<T, P>(group, p, units, rows, next.header, work);
  }
  for (; p < group.count; p++) {
    add_chunk<T, 1>(group, p, units, rows, find_unit<T>(group.panel(p), units.end).header, work);
  }
}

/// Rows of x times a group of panels.
template <dtype T>
void multiply_quant_group(const matrix& w, const product_part& part, const panel_group& group,
                          const x_rows& rows, bool stream, quant_work<T>& work) {
  uint32_t end_of_all = rows.origin + rows.units, count = group.count * rows.count;
  uint32_t most = stream ? x_units / rows.count : chunk_units;
  work.sums.start(count);
  for (uint32_t s = part.segment_begin; s < part.segment_end; s++) {
    uint32_t u = segment_unit<T>(w, s), end = segment_unit<T>(w, s + 1);
    while (u < end) {
      if (stream) {
        if (u < work.has.begin || u >= work.has.end) {
          gather<T>(rows, {u, least_of(u + most, end_of_all)}, rows.count, work);
        }
        uint32_t stop = least_of(end, work.has.end);
        add_streams<T>(group, {u, stop}, work.x + (u - work.has.begin) * rows.count, rows.count,
                       work.sums.active);
        u = stop;
      } else {
        unit_range units{u, least_of(u + most, end)};
        gather<T>(rows, units, tile_height(rows.count), work);
        add_chunks<T>(group, units, rows.count, work);
        u = units.end;
      }
    }
    work.sums.close(s, s + 1 == part.segment_end, count);
  }
}

template <dtype T>
void store_group(const product_part& part, const panel_group& group, const x_rows& rows,
                 const quant_work<T>& work, float* y, size_t y_stride) {
  for (uint32_t p = 0; p < group.count; p++) {
    for (uint32_t r = 0; r < rows.count; r++) {
      lanes sum = work.sums.active[p * rows.count + r];
      store_panel(part, group.begin + p, sum, y + (rows.begin + r) * y_stride);
    }
  }
}

template <dtype T>
void multiply_quant(const matrix& w, const product_part& part, const activations& x, float* y,
                    size_t y_stride) {
  alignas(64) quant_work<T> work;
  work.has = {0, 0};
  size_t stride = (size_t{w.cols / block_elements(T)} * panel_block_bytes(T) + 63) / 64 * 64;
  uint32_t end = (part.row_end + panel_rows - 1) / panel_rows;
  uint32_t origin = segment_unit<T>(w, part.segment_begin);
  uint32_t units = segment_unit<T>(w, part.segment_end) - origin;
  bool stream = x.rows <= stream_rows;
  uint32_t most = stream ? stream_panels : group_panels;
  uint32_t blocks = (x.rows + tile_block_rows - 1) / tile_block_rows;
  uint32_t block = (x.rows + blocks - 1) / blocks;
  for (uint32_t p = part.row_begin / panel_rows; p < end; p += most) {
    panel_group group{(const uint8_t*)w.panels + p * stride, stride, p, least_of(most, end - p)};
    for (uint32_t m = 0; m < x.rows; m += block) {
      x_rows rows{x, m, least_of(block, x.rows - m), units, origin};
      multiply_quant_group<T>(w, part, group, rows, stream, work);
      store_group<T>(part, group, rows, work, y, y_stride);
    }
  }
}

}  // namespace
}  // namespace lethe
