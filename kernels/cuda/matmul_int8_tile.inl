#pragma once

#include "kernels/cuda/matmul_int8.inl"
#include "kernels/cuda/matmul_tree.inl"

// More rows of x than int8_rows takes: a block multiplies 8 panels with 64 rows of x, a unit after
// the other, a warp one panel. x and all factors go through shared words, a unit ahead; weights
// come from memory into the lanes that multiply them, as they lie.

namespace lethe::device {

template <dtype T>
struct int8_tile {
  static constexpr uint32_t threads = 256, side_by_side = 2, panels = threads / warp_lanes;
  // Registers are what there is least of, and q6_k has the most to hold.
  static constexpr uint32_t R = T == dtype::q6_k ? 32 : 64, tiles = R / 8;  // 16 x 8, of a warp
  product_place place;
  x_rows x;

  launch_shape shape() const {
    return {blocks_for(place.panel_count(), panels), blocks_for(place.rows, R),
            tree::words + 2 * stage_words};
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    const lane_place l = lane_of(block);
    const uint32_t end = segment_start<T>(place.cols, place.part.segment_end) / unit_columns;
    uint32_t u = segment_start<T>(place.cols, place.part.segment_begin) / unit_columns;
    packed_rows now{};
    if (u < end) {
      now = read(block, l, u);
      put(block, u, fetch(block, u));
    }
    block.barrier();
    for (uint32_t s = place.part.segment_begin; s < place.part.segment_end; s++) {
      lane_sums<float> sums[tiles] = {};
      for (uint32_t until = segment_start<T>(place.cols, s + 1) / unit_columns; u < until; u++) {
        // The last unit twice rather than a branch around what is read ahead.
        packed_rows next = read(block, l, least_of(u + 1, end - 1));
        fetched from = fetch(block, least_of(u + 1, end - 1));
        if (l.works) add(block, l, u, now, sums);
        put(block, u + 1, from);
        block.barrier();
        now = next;
      }
      if (!l.works) continue;
      auto outputs = [&](auto f) { for_outputs(block, l, f); };
      tree::finish(block, place.part, s, sums, outputs, place.to);
    }
  }

 private:
  // Shared words: sums that wait, and two stages of
  //   numbers of x [16 rows][lane][tile of 8 rows][words t, t + 4]
  //   factors of x [factor][16 rows][t][tile of 8 rows][column 2 * t, 2 * t + 1]
  //   factors of weights [factor][row]
  // so that a lane reads four words of x at once, and a warp's are neighbours.
  static constexpr uint32_t x_at = R * 8;
  static constexpr uint32_t weights_at = x_at + x_factors<T>::count * R;
  static constexpr uint32_t rows = panels * panel_rows;  // of weights
  static constexpr uint32_t stage_words = weights_at + weight_factors<T>::count * rows;
  using tree = waiting_sums<tiles, threads>;
  static_assert(tree::words + 2 * stage_words <= shared_words_most);
  LETHE_BODY static uint32_t stage_of(uint32_t unit) {
    return tree::words + unit % 2 * stage_words;
  }

  struct lane_place {
    uint32_t lane, warp;
    uint32_t panel;  // bytes behind the block's first
    bool works;      // whether anything of the warp's is stored
  };
  template <class Block>
  LETHE_BODY lane_place lane_of(Block& block) const {
    uint32_t warp = block.thread() / warp_lanes;
    return {block.thread() % warp_lanes, warp, panel_offset(block, warp),
            block.x() * panels + warp <= last_panel()};
  }
  LETHE_BODY uint32_t last_panel() const {
    return (place.part.row_end - 1) / panel_rows - place.part.row_begin / panel_rows;
  }
  /// Of the block's panel i; of the last for those that are not there.
  template <class Block>
  LETHE_BODY uint32_t panel_offset(Block& block, uint32_t i) const {
    return least_of(i, last_panel() - block.x() * panels) * uint32_t(place.pitch);
  }
  template <class Block>
  LETHE_BODY packed_rows read(Block& block, const lane_place& l, uint32_t u) const {
    return read_rows<T>(panel_at(place, block.x() * panels) + l.panel, u, l.lane);
  }

  /// What a thread brings of a unit: two words of a row of x; of a row of weights the scales, or of
  /// a row of x scale and sums, as they lie.
  struct fetched {
    uint32_t q[2];
    packed_scales rest;
  };
  LETHE_BODY static bool has_row(uint32_t thread) { return threads == 4 * R || thread < 4 * R; }
  template <class Block>
  LETHE_BODY fetched fetch(Block& block, uint32_t u) const {
    const uint32_t origin = segment_start<T>(place.cols, place.part.segment_begin) / unit_columns;
    const uint32_t thread = block.thread(), last = place.rows - 1 - block.y() * R;
    const size_t first = x.place(block.y() * R, u - origin);
    uint32_t row = thread / 64 * 16 + thread / 4 % 2 * 8 + thread / 8 % 8;
    uint32_t at = least_of(row, last) * x.units;
    const int8_t* q = x.rows.q + 32 * first + (32 * at + 4 * (thread % 4));
    fetched f{};
    if (has_row(thread)) f.q[0] = load<uint32_t>(q), f.q[1] = load<uint32_t>(q + 16);
    if (thread < rows) {
      const uint8_t* panel =
          panel_at(place, block.x() * panels) + panel_offset(block, thread / panel_rows);
      f.rest = unit_place<T>(panel, u, thread % panel_rows).read_scales();
    } else if (thread < rows + R) {
      at = least_of(thread - rows, last) * x.units;
      f.rest.half[0] = bits_of((x.rows.scales + first)[at]);
      f.rest.half[1] = load<uint32_t>(x.rows.sums + 2 * first + 2 * at);
    }
    return f;
  }
  template <class Block>
  LETHE_BODY static void put(Block& block, uint32_t unit, const fetched& f) {
    const uint32_t thread = block.thread(), stage = stage_of(unit);
    uint32_t lane = thread / 8 % 8 * 4 + thread % 4;
    uint32_t to = stage + thread / 64 * 128 + lane * 4 + thread / 4 % 2 * 2;
    if (has_row(thread)) block.put_word(to, f.q[0]), block.put_word(to + 1, f.q[1]);
    if (thread < rows) {
      weight_factors<T> w(unit_place<T>::scales_of(f.rest));
      for (uint32_t i = 0; i < w.count; i++)
        block.put(stage + weights_at + i * rows + thread, w.v[i]);
    } else if (thread < rows + R) {
      x_factors<T> of(from_bits(f.rest.half[0]), f.rest.half[1]);
      uint32_t row = thread - rows;
      to = stage + x_at + row / 16 * 16 + row % 8 / 2 * 4 + row / 8 % 2 * 2 + row % 2;
      for (uint32_t i = 0; i < of.count; i++) block.put_word(to + i * R, of.v[i]);
    }
  }

  template <class Block>
  LETHE_BODY static void add(Block& block, const lane_place& l, uint32_t unit,
                             const packed_rows& packed, lane_sums<float> (&sums)[tiles]) {
    const uint32_t stage = stage_of(unit);
    uint32_t a[4];
    rows_of<T>(packed, l.lane, a);
    int8_tile_factors<T> f;
    for (uint32_t j = 0; j < 2; j++) {
      uint32_t at = stage + weights_at + l.warp * panel_rows + l.lane / 4 + 8 * j;
      for (uint32_t i = 0; i < f.w[j].count; i++) f.w[j].v[i] = block.get(at + i * rows);
    }
    for (uint32_t sixteen = 0; sixteen < R / 16; sixteen++) {
      four_words b = block.get_four(stage + sixteen * 128 + l.lane * 4);
      four_words of[x_factors<T>::count];
      for (uint32_t i = 0; i < x_factors<T>::count; i++) {
        of[i] = block.get_four(stage + x_at + i * R + sixteen * 16 + l.lane % 4 * 4);
      }
      for (uint32_t tile = 0; tile < 2; tile++) {
        for (uint32_t j = 0; j < 2; j++) {
          for (uint32_t i = 0; i < f.x[j].count; i++) f.x[j].v[i] = of[i].v[tile * 2 + j];
        }
        uint32_t columns[2] = {b.v[tile * 2], b.v[tile * 2 + 1]};
        add_products<T>(block, a, columns, f, sums[sixteen * 2 + tile].c);
      }
    }
  }

  /// f(i, row, column) of each of the lane's sums that is an output.
  template <class Block, class F>
  LETHE_BODY void for_outputs(Block& block, const lane_place& l, F f) const {
    const product_part& part = place.part;
    const uint32_t lane = anew(l.lane), outputs = part.row_end - part.row_begin;
    const uint32_t first_row = anew(block.y()) * R + lane % 4 * 2;
    // Before the part's first output: far beyond its last.
    const uint32_t first_col =
        (block.x() * panels + l.warp) * panel_rows + lane / 4 - part.row_begin % panel_rows;
    LETHE_UNROLL
    for (uint32_t i = 0; i < 4 * tiles; i++) {
      uint32_t row = first_row + i / 4 * 8 + i % 2, col = first_col + i % 4 / 2 * 8;
      if (col < outputs && row < place.rows) f(i, row, col);
    }
  }
};

}  // namespace lethe::device
