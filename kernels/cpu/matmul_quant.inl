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
};

/// x goes in blocks of rows and, copied together, in chunks of K; panels in groups, so that a copy
/// serves several.
inline constexpr uint32_t quant_block_rows = 16, quant_group_panels = 8, chunk_units = 512;

struct quant_work {
  segment_tree<quant_block_rows * quant_group_panels> sums;  // [panel][row of x]
  x_unit x[chunk_units];                                     // [unit][row of x]
  unit_range chunk;                                          // the units in x
};

/// Rows of x that go through the panels together.
struct row_block {
  uint32_t begin, count;
};

/// Copies the work's chunk of rows of x, whose own first unit is `origin`.
template <dtype T>
void gather(const activations& x, uint32_t cols, row_block rows, uint32_t origin,
            quant_work& work) {
  for (uint32_t r = 0; r < rows.count; r++) {
    size_t row = rows.begin + r;
    const int8_t* q = x.q.q + row * cols;
    const float* scales = x.q.scales + row * (cols / 32);
    const int16_t* sums = x.q.sums + row * (cols / 16);
    for (uint32_t u = work.chunk.begin; u < work.chunk.end; u++) {
      uint32_t i = u - origin;
      x_unit& unit = work.x[(u - work.chunk.begin) * rows.count + r];
      int32_t sum = sums[2 * i] + sums[2 * i + 1];
      __builtin_memcpy(unit.q, q + 32 * i, 32);
      unit.scale = scales[i];
      unit.scaled_sum = scales[i] * float(sum);
      unit.sums[0] = sums[2 * i];
      unit.sums[1] = sums[2 * i + 1];
      unit.correction = -offset_of<T>() * sum;
    }
  }
}

template <dtype T>
inline uint32_t segment_unit(const matrix& w, uint32_t s) {
  return segment_begin(T, w.cols, s) / unit_columns;
}

/// Neighbouring panels.
struct panel_group {
  const uint8_t* first;
  size_t stride;
  uint32_t begin, count;
};

/// Units of the chunk that lie in one segment, for each panel of the group.
template <dtype T>
void add_units(const panel_group& group, unit_range units, const x_unit* x, uint32_t rows,
               lanes* sums) {
  for (uint32_t p = 0; p < group.count; p++) {
    for (uint32_t u = units.begin; u < units.end; u++) {
      unit_place at = find_unit<T>(group.first + p * group.stride, u);
      for (uint32_t i = 0; i < unit_bytes(T); i += 64) {
        __builtin_prefetch(at.unit + 2 * fetch_ahead + i);
      }
      add_unit<T>(at, x + (u - units.begin) * rows, rows, sums + p * rows);
    }
  }
}

/// A block of rows of x times a group of panels.
template <dtype T>
void multiply_quant_group(const matrix& w, const product_part& part, const panel_group& group,
                          const activations& x, row_block rows, quant_work& work) {
  unit_range all{segment_unit<T>(w, part.segment_begin), segment_unit<T>(w, part.segment_end)};
  uint32_t cols = (all.end - all.begin) * unit_columns, count = group.count * rows.count;
  work.sums.start(count);
  for (uint32_t s = part.segment_begin; s < part.segment_end; s++) {
    uint32_t u = segment_unit<T>(w, s), end = segment_unit<T>(w, s + 1);
    while (u < end) {
      if (u < work.chunk.begin || u >= work.chunk.end) {
        uint32_t most = chunk_units / rows.count, left = all.end - u;
        work.chunk = {u, u + (left < most ? left : most)};
        gather<T>(x, cols, rows, all.begin, work);
      }
      uint32_t stop = end < work.chunk.end ? end : work.chunk.end;
      add_units<T>(group, {u, stop}, work.x + (u - work.chunk.begin) * rows.count, rows.count,
                   work.sums.active);
      u = stop;
    }
    work.sums.close(s, s + 1 == part.segment_end, count);
  }
}

inline void store_group(const product_part& part, const panel_group& group, row_block rows,
                        const quant_work& work, float* y, size_t y_stride) {
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
  alignas(64) quant_work work;
  size_t stride = (size_t{w.cols / block_elements(T)} * panel_block_bytes(T) + 63) / 64 * 64;
  uint32_t end = (part.row_end + panel_rows - 1) / panel_rows;
  // A few rows of x are copied once, and memory is read from end to end.
  bool fits = x.rows <= quant_block_rows && x.rows * (w.cols / unit_columns) <= chunk_units;
  uint32_t most = fits ? 1 : quant_group_panels;
  work.chunk = {0, 0};
  for (uint32_t p = part.row_begin / panel_rows; p < end; p += most) {
    uint32_t count = end - p < most ? end - p : most;
    panel_group group{(const uint8_t*)w.panels + p * stride, stride, p, count};
    for (uint32_t m = 0; m < x.rows; m += quant_block_rows) {
      row_block rows{m, x.rows - m < quant_block_rows ? x.rows - m : quant_block_rows};
      if (!fits) work.chunk = {0, 0};
      multiply_quant_group<T>(w, part, group, x, rows, work);
      store_group(part, group, rows, work, y, y_stride);
    }
  }
}

}  // namespace
}  // namespace lethe
