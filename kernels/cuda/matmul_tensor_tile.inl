#pragma once

#include "kernels/cuda/matmul_tensor.inl"
#include "kernels/cuda/matmul_tree.inl"

// Products of many rows of x by tensor cores: a block multiplies 8 panels with 64 rows of x, all
// of K in order, two steps of sixteen columns after two others. Both factors are copied from memory
// to shared words, as they lie there, while those of before are multiplied. A sum is given what
// tensor_products gives it.

namespace lethe::device {

template <dtype T>
struct tensor_tile {
  static constexpr uint32_t panels = 8, R = 64, side_by_side = 2;
  static constexpr product_type as = tensor_type<T>;
  // A warp has half of the panels and half of the rows of x.
  static constexpr uint32_t P = 4, C = 4, tiles = P * C;
  static constexpr uint32_t warps_wide = panels / P, warps = warps_wide * (R / 8 / C);
  static constexpr uint32_t threads = warps * warp_lanes;
  product_place place;
  const float* x;
  size_t stride;

  launch_shape shape() const {
    return {blocks_for(place.panel_count(), panels), blocks_for(place.rows, R),
            tree::words + stages * stage_words};
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    const product_part& part = place.part;
    const tile_place tile(block, place, panels, R);
    const lane_place l(*this, block, tile);
    stretch now{part.segment_begin, part.segment_begin, 0, 0};
    now.next_segment(place.cols, part.segment_end);
    stretch next = now;
    for (uint32_t stage = 0; stage + 1 < stages; stage++) {
      ask(block, l, stage, next);
      next = next.after(place.cols, part.segment_end);
    }
    uint32_t stage = 0;
    tree waiting;
    for (uint32_t s = part.segment_begin; s < part.segment_end; s++) {
      product_sums<as> sums[tiles] = {};
      while (now.segment == s && now.k < now.end) {
        block.template copies_there<stages - 2>();
        block.barrier();
        // Where the stage before was, which everybody has multiplied.
        ask(block, l, stage == 0 ? stages - 1 : stage - 1, next);
        next = next.after(place.cols, part.segment_end);
        LETHE_UNROLL
        for (uint32_t i = 0; i < steps; i++) {
          add_step<T, P, C>(block, read(block, l, stage, i), sums);
        }
        now = now.after(place.cols, part.segment_end);
        stage = stage + 1 == stages ? 0 : stage + 1;
      }
      const outputs own(*this, block, tile);
      waiting.finish(
          block, part, s, sums, [&](uint32_t i) { return own.place_of(i); }, place.to, tile.y * R);
    }
  }

 private:
  // A stage: of panels [panel][step][column 4 * t + j at 4 * j + (t ^ j)][16 rows], of x
  // [row][step, the second one first in odd rows][column]. So neither lanes that read together meet
  // in a bank nor parts of a line that comes from memory.
  static constexpr uint32_t stages = 3, steps = 2, columns = steps * tensor_step;
  static constexpr uint32_t step_words = warp_lanes * 4;  // of a panel
  static constexpr uint32_t x_at = panels * steps * step_words;
  static constexpr uint32_t stage_words = x_at + R * columns;
  // What a warp asks for.
  static constexpr uint32_t own_panels = panels / warps, own_rows = R / warps, at_once = 4;
  using tree = waiting_sums<tiles, threads, true>;
  static_assert(tree::words + stages * stage_words <= shared_words_most);
  LETHE_BODY static uint32_t stage_at(uint32_t stage) { return tree::words + stage * stage_words; }

  /// Where a stage is: columns [k, end) of a segment that has some; behind the last none.
  struct stretch {
    uint32_t segment, next, k, end;

    LETHE_BODY void next_segment(uint32_t cols, uint32_t segments_end) {
      for (k = end; k == end && next < segments_end; next++) {
        segment = next;
        k = segment_start<T>(cols, next);
        end = segment_start<T>(cols, next + 1);
      }
    }
    LETHE_BODY stretch after(uint32_t cols, uint32_t segments_end) const {
      stretch s = *this;
      s.k = least_of(k + columns, end);
      if (s.k == end) s.next_segment(cols, segments_end);
      return s;
    }
  };

  /// What a lane copies: of panels eight rows of a column of each step, of x four columns of a row.
  /// Pointers are as if columns began with the matrix' first.
  struct lane_place {
    uint32_t lane, warp;
    const uint8_t* panel[own_panels];  // of those that are not there the block's first
    const float* x;
    uint32_t row[own_rows / at_once];  // floats behind x; of those that are not there the last
    bool whole;                        // four columns of x can be copied at once

    template <class Block>
    LETHE_BODY lane_place(const tensor_tile& of, Block& block, const tile_place& tile)
        : lane(block.thread() % warp_lanes), warp(block.thread() / warp_lanes) {
      const product_part& part = of.place.part;
      const uint32_t first = tile.x * panels;
      const uint32_t origin = segment_start<T>(of.place.cols, part.segment_begin);
      for (uint32_t i = 0; i < own_panels; i++) {
        uint32_t p = first + warp * own_panels + i;
        bool real = (part.row_begin / panel_rows + p) * panel_rows < part.row_end;
        panel[i] = panel_at(of.place, real ? p : first) + column() * column_bytes + lane % 2 * 16;
      }
      const uint32_t first_row = tile.y * R;
      x = of.x + first_row * of.stride - origin;
      for (uint32_t i = 0; i < own_rows / at_once; i++) {
        uint32_t r = warp * own_rows + i * at_once + lane / 8;
        row[i] = least_of(r, of.place.rows - 1 - first_row) * uint32_t(of.stride) + lane % 8 * 4;
      }
      whole = of.stride % 4 == 0 && reinterpret_cast<uintptr_t>(of.x) % 16 == 0 && origin % 4 == 0;
    }
    LETHE_BODY uint32_t column() const { return lane / 2; }
  };
  static constexpr uint32_t column_bytes = panel_rows * 2;
  /// Where column 4 * t + j of a step of a panel lies.
  LETHE_BODY static uint32_t column_at(uint32_t t, uint32_t j) {
    return (4 * j + (t ^ j)) * (panel_rows / 2);
  }
  /// Where four columns of a row of x lie, in fours.
  LETHE_BODY static uint32_t four_of(uint32_t row, uint32_t four) {
    return row * (columns / 4) + (four ^ row % 2 * 4);
  }

  template <class Block>
  LETHE_BODY static void ask(Block& block, const lane_place& l, uint32_t stage, const stretch& s) {
    if (l.whole && s.k % 4 == 0 && s.k + columns <= s.end) {
      ask_panels<true>(block, l, stage, s);
      ask_x<true>(block, l, stage, s);
    } else if (s.k < s.end) {
      ask_panels<false>(block, l, stage, s);
      ask_x<false>(block, l, stage, s);
    }
    block.copies_asked();
  }
  /// Not `whole`: zeros beyond the segment.
  template <bool whole, class Block>
  LETHE_BODY static void ask_panels(Block& block, const lane_place& l, uint32_t stage,
                                    const stretch& s) {
    uint32_t to = stage_at(stage) + l.warp * own_panels * steps * step_words +
                  column_at(l.column() / 4, l.column() % 4) + l.lane % 2 * 4;
    LETHE_UNROLL
    for (uint32_t i = 0; i < own_panels * steps; i++, to += step_words) {
      uint32_t step = i % steps * tensor_step;
      const uint8_t* from = l.panel[i / steps] + size_t{s.k} * column_bytes + step * column_bytes;
      if (whole || s.k + step + l.column() < s.end) {
        block.copy_four(to, from);
      } else {
        for (uint32_t j = 0; j < 4; j++) block.put_word(to + j, 0);
      }
    }
  }
  template <bool whole, class Block>
  LETHE_BODY static void ask_x(Block& block, const lane_place& l, uint32_t stage,
                               const stretch& s) {
    uint32_t to =
        stage_at(stage) + x_at + l.warp * own_rows * columns + four_of(l.lane / 8, l.lane % 8) * 4;
    LETHE_UNROLL
    for (uint32_t i = 0; i < own_rows / at_once; i++, to += at_once * columns) {
      uint32_t k = s.k + l.lane % 8 * 4;
      const float* from = l.x + (l.row[i] + s.k);
      if (whole || (l.whole && k % 4 == 0 && k + 4 <= s.end)) {
        block.copy_four(to, from);
      } else {
        for (uint32_t j = 0; j < 4; j++) block.put(to + j, k + j < s.end ? from[j] : 0.0f);
      }
    }
  }

  template <class Block>
  LETHE_BODY static step_numbers<P, C> read(Block& block, const lane_place& l, uint32_t stage,
                                            uint32_t step) {
    const uint32_t g = l.lane / 4, t = l.lane % 4;
    const uint32_t w = stage_at(stage) + (l.warp % warps_wide * P * steps + step) * step_words;
    const uint32_t x = stage_at(stage) + x_at + l.warp / warps_wide * C * 8 * columns +
                       four_of(g, step * 4 + t) * 4;
    step_numbers<P, C> n;
    for (uint32_t p = 0; p < P; p++) {
      for (uint32_t j = 0; j < 4; j++) {
        n.w[p][j] = block.get_word(w + p * steps * step_words + column_at(t, j) + g);
      }
    }
    for (uint32_t c = 0; c < C; c++) {
      four_words four = block.get_four(x + c * 8 * columns);
      for (uint32_t j = 0; j < 4; j++) n.x[c][j] = from_bits(four.v[j]);
    }
    return n;
  }

  /// Of a lane's sums.
  struct outputs {
    uint32_t row, col, rows, cols;  // of the first; how many there are from the block's first on
    template <class Block>
    LETHE_BODY outputs(const tensor_tile& of, Block& block, const tile_place& tile) {
      const product_part& part = of.place.part;
      const uint32_t thread = anew(block.thread()), warp = thread / warp_lanes;
      row = warp / warps_wide * 8 * C + thread % 4 * 2, rows = of.place.rows - tile.y * R;
      // Before the part's first output: far beyond its last.
      col = (tile.x * panels + warp % warps_wide * P) * panel_rows + thread % warp_lanes / 4 * 2 -
            part.row_begin % panel_rows;
      cols = part.row_end - part.row_begin;
    }
    LETHE_BODY sum_place place_of(uint32_t i) const {
      uint32_t r = row + i / 4 % C * 8 + i % 2, c = col + i / 4 / C * panel_rows + i % 4 / 2;
      return {least_of(r, rows - 1), least_of(c, cols - 1), r < rows && c < cols};
    }
  };
};

}  // namespace lethe::device
