// Products with quantized weights: integers within a unit of 32 columns, floats between units.

#include <stddef.h>
#include <stdint.h>

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

/// Up to `stream_rows` rows of x go straight along the weights, of several panels by turns: memory
/// is read fastest in a few streams. More rows go in blocks, tile by tile, along chunks of units
/// that were made ready before, in the first cache.
inline constexpr uint32_t stream_rows = 2, stream_panels = 4;
inline constexpr uint32_t most_rows = 48, group_panels = 16;
inline constexpr uint32_t x_units = 512;

template <dtype T>
struct quant_work {
  segment_tree<most_rows * group_panels> sums;  // tile after tile, of each [panel][row]
  prepared_unit<T> ready[tile_panels_quant][ready_units];
  x_unit x[x_units];  // [tile][unit][row]
  unit_range has;     // the units in x
};

/// Neighbouring panels.
struct panel_group {
  const uint8_t* first;
  size_t stride;
  uint32_t begin, count;
  const uint8_t* panel(uint32_t p) const { return first + p * stride; }
};

/// Some rows of x, those of a tile, how many units each has and which of K's is its first.
struct x_rows {
  const quantized_rows& x;
  uint32_t begin, count, tile;
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

/// Copies units of all rows, tile after tile.
template <dtype T>
void gather(const x_rows& rows, unit_range units, quant_work<T>& work) {
  work.has = units;
  x_unit* to = work.x;
  for (uint32_t r = 0; r < rows.count; r += rows.tile) {
    uint32_t tile = least_of(rows.tile, rows.count - r);
    for (uint32_t i = 0; i < tile; i++) {
      size_t at = size_t{rows.begin + r + i} * rows.units + (units.begin - rows.origin);
      copy_units<T>(rows.x, at, units.size(), to + i, tile);
    }
    to += tile * units.size();
  }
}

template <dtype T>
inline uint32_t segment_unit(const matrix& w, uint32_t s) {
  return segment_begin(T, w.cols, s) / unit_columns;
}

/// Units that lie in one segment, from memory: of each panel one, then of each the next.
template <dtype T>
void add_streams(const panel_group& group, unit_range units, uint32_t rows, quant_work<T>& work) {
  const x_unit* x = work.x + (units.begin - work.has.begin) * rows;
  for (uint32_t u = units.begin; u < units.end; u++, x += rows) {
    for (uint32_t p = 0; p < group.count; p++) {
      unit_place at = find_unit<T>(group.panel(p), u);
      for (uint32_t i = 0; i < unit_bytes(T); i += 64) {
        __builtin_prefetch(at.unit + fetch_ahead + i);
      }
      prepared_unit<T> unit;
      prepare_unit<T>(at, unit);
      add_rows<T, 1, stream_rows>(&unit, x, rows, 1, work.sums.active() + p * rows, {});
    }
  }
}

/// Units, which lie in one segment and in x, of P panels from p on. `next` is where the weights
/// after them lie.
template <dtype T, uint32_t P>
void add_chunk(const panel_group& group, uint32_t p, unit_range units, const x_rows& rows,
               const uint8_t* next, quant_work<T>& work) {
  for (uint32_t i = 0; i < P; i++) {
    for (uint32_t u = 0; u < units.size(); u++) {
      prepare_unit<T>(find_unit<T>(group.panel(p + i), units.begin + u), work.ready[i][u]);
    }
  }
  uint32_t tiles = (rows.count + rows.tile - 1) / rows.tile;
  uint32_t steps = tiles * units.size();
  lines_ahead ahead{next, group.stride, (ready_units * unit_bytes(T) / 64 + steps - 1) / steps};
  const x_unit* x = work.x;
  lanes* sums = work.sums.active() + p * rows.count;
  for (uint32_t r = 0; r < rows.count; r += rows.tile) {
    uint32_t tile = least_of(rows.tile, rows.count - r);
    add_rows<T, P>(work.ready[0], x, tile, units.size(), sums + r * P, ahead);
    ahead.at += units.size() * ahead.lines * 64;
    x += tile * units.size();
  }
}

template <dtype T>
void add_chunks(const panel_group& group, unit_range units, const x_rows& rows,
                quant_work<T>& work) {
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

/// Some units of a segment from `begin` on; returns where the next ones begin.
template <dtype T>
uint32_t add_some(const panel_group& group, unit_range units, const x_rows& rows,
                  quant_work<T>& work) {
  if (rows.count > stream_rows) {
    units.end = least_of(units.begin + ready_units, units.end);
    gather<T>(rows, units, work);
    add_chunks<T>(group, units, rows, work);
    return units.end;
  }
  if (units.begin < work.has.begin || units.begin >= work.has.end) {
    uint32_t most = x_units / rows.count, end = rows.origin + rows.units;
    gather<T>(rows, {units.begin, least_of(units.begin + most, end)}, work);
  }
  units.end = least_of(units.end, work.has.end);
  add_streams<T>(group, units, rows.count, work);
  return units.end;
}

/// Rows of x times a group of panels.
template <dtype T>
void multiply_quant_group(const matrix& w, const product_part& part, const panel_group& group,
                          const x_rows& rows, quant_work<T>& work) {
  uint32_t count = group.count * rows.count;
  work.sums.start(count);
  for (uint32_t s = part.segment_begin; s < part.segment_end; s++) {
    uint32_t u = segment_unit<T>(w, s), end = segment_unit<T>(w, s + 1);
    while (u < end) u = add_some<T>(group, {u, end}, rows, work);
    work.sums.close(s, s + 1 == part.segment_end, count);
  }
}

template <dtype T>
void store_group(const product_part& part, const panel_group& group, const x_rows& rows,
                 const quant_work<T>& work, float* y, size_t y_stride) {
  uint32_t together = rows.count > stream_rows ? tile_panels_quant : 1;
  for (uint32_t r = 0; r < rows.count; r++) {
    uint32_t begin = r / rows.tile * rows.tile, tile = least_of(rows.tile, rows.count - begin);
    for (uint32_t p = 0, panels; p < group.count; p += panels) {
      panels = p + together <= group.count ? together : 1;
      const lanes* sums = work.sums.active() + p * rows.count + begin * panels + (r - begin);
      for (uint32_t i = 0; i < panels; i++, sums += tile) {
        store_panel(part, group.begin + p + i, *sums, y + (rows.begin + r) * y_stride);
      }
    }
  }
}

/// The size of equal parts of a whole, none above `most`; the last may be smaller.
inline uint32_t equal_parts(uint32_t whole, uint32_t most) {
  uint32_t parts = (whole + most - 1) / most;
  return (whole + parts - 1) / parts;
}

template <dtype T>
void multiply_quant(const matrix& w, const product_part& part, const activations& x, float* y,
                    size_t y_stride) {
  if (x.rows == 0) return;
  alignas(64) quant_work<T> work;
  static_assert(sizeof work + 4096 <= kernel_stack_bytes);
  size_t stride = (size_t{w.cols / block_elements(T)} * panel_block_bytes(T) + 63) / 64 * 64;
  uint32_t end = (part.row_end + panel_rows - 1) / panel_rows;
  uint32_t origin = segment_unit<T>(w, part.segment_begin);
  uint32_t units = segment_unit<T>(w, part.segment_end) - origin;
  uint32_t most = x.rows > stream_rows ? group_panels : stream_panels;
  uint32_t block = equal_parts(x.rows, most_rows);
  block = (block + tile_rows - 1) / tile_rows * tile_rows;
  work.has = {0, 0};
  for (uint32_t p = part.row_begin / panel_rows; p < end; p += most) {
    panel_group group{(const uint8_t*)w.panels + p * stride, stride, p, least_of(most, end - p)};
    for (uint32_t m = 0; m < x.rows; m += block) {
      uint32_t count = least_of(block, x.rows - m);
      x_rows rows{x.q, m, count, equal_parts(count, tile_rows), units, origin};
      multiply_quant_group<T>(w, part, group, rows, work);
      store_group<T>(part, group, rows, work, y, y_stride);
    }
  }
}

}  // namespace
}  // namespace lethe
