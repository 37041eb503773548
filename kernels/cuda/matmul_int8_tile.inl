#pragma once

#include "kernels/cuda/matmul_int8.inl"
#include "kernels/cuda/matmul_tree.inl"

// More rows of x than int8_rows takes: a block multiplies 8 panels with 64 rows of x, a unit after
// the other, a warp one panel. Numbers and scales are copied from memory to shared words, as they
// lie there, some units ahead; factors are made of scales one unit ahead.

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
            tree::words + stages * stage_words + 2 * factor_words};
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    const tile_place tile(block, place, panels, R);
    const lane_place l = lane_of(block, tile);
    uint32_t u = segment_start<T>(place.cols, place.part.segment_begin) / unit_columns;
    for (uint32_t stage = 0; stage + 1 < stages; stage++) ask(block, l, stage, u + stage);
    block.template copies_there<stages - 2>();
    block.barrier();
    put_factors(block, l, 0, u);
    uint32_t stage = 0;
    tree waiting;
    for (uint32_t s = place.part.segment_begin; s < place.part.segment_end; s++) {
      lane_sums<float> sums[tiles] = {};
      for (uint32_t until = segment_start<T>(place.cols, s + 1) / unit_columns; u < until; u++) {
        block.template copies_there<stages - 3>();
        block.barrier();
        // Where the stage before was, which everybody has multiplied.
        ask(block, l, (stage + stages - 1) % stages, u + stages - 1);
        uint32_t next = (stage + 1) % stages;
        put_factors(block, l, next, u + 1);
        if (l.works) add(block, l, stage, u, sums);
        stage = next;
      }
      if (!l.works) continue;
      const outputs own(*this, block, tile);
      waiting.finish(
          block, place.part, s, sums, [&](uint32_t i) { return own.place_of(i); }, place.to,
          tile.y * R);
    }
  }

 private:
  // Shared words: sums that wait; stages of
  //   panels [panel][header, unit]
  //   numbers of x [row][half of the unit; the other one first in every second four rows]
  //   scales of x [row], sums [row]
  // and two units' factors:
  //   of x [factor][16 rows][t][tile of 8 rows][column 2 * t, 2 * t + 1], of weights [factor][row]
  // so that a warp's lanes read neighbours.
  static constexpr uint32_t header_bytes = unit_of(T).header_bytes;
  static constexpr uint32_t panel_words = (header_bytes + unit_bytes(T)) / 4;
  static constexpr uint32_t numbers_at = panels * panel_words, scales_at = numbers_at + 8 * R;
  static constexpr uint32_t sums_at = scales_at + R, stage_words = sums_at + R, stages = 4;
  static constexpr uint32_t rows = panels * panel_rows;  // of weights
  static constexpr uint32_t weights_at = x_factors<T>::count * R;
  static constexpr uint32_t factor_words = weights_at + weight_factors<T>::count * rows;
  using tree = waiting_sums<tiles, threads, false>;
  static constexpr uint32_t factors_at = tree::words + stages * stage_words;
  static_assert(factors_at + 2 * factor_words <= shared_words_most);
  LETHE_BODY static uint32_t stage_at(uint32_t stage) { return tree::words + stage * stage_words; }
  LETHE_BODY static uint32_t factors_of(uint32_t unit) {
    return factors_at + unit % 2 * factor_words;
  }

  struct lane_place {
    tile_place tile;
    uint32_t lane, warp;
    uint32_t panel;  // the warp's, bytes behind the block's first
    uint32_t end;    // behind the last unit
    bool works;      // whether anything of the warp's is stored
    uint32_t row;    // of x, times units, that the thread copies something of
    uint32_t to;     // where that goes in a stage
  };
  template <class Block>
  LETHE_BODY lane_place lane_of(Block& block, const tile_place& tile) const {
    const product_part& part = place.part;
    const uint32_t thread = block.thread(), warp = thread / warp_lanes;
    // Of panels that are not there the last, of rows of x too.
    const uint32_t last_panel =
        (part.row_end - 1) / panel_rows - part.row_begin / panel_rows - tile.x * panels;
    const uint32_t last_row = place.rows - 1 - tile.y * R;
    const uint32_t row = thread < 2 * R ? thread / 2 : thread % R;
    const uint32_t number_at = numbers_at + 8 * row + (thread % 2 ^ row / 4 % 2) * 4;
    return {.tile = tile,
            .lane = thread % warp_lanes,
            .warp = warp,
            .panel = least_of(warp, last_panel) * uint32_t(place.pitch),
            .end = segment_start<T>(place.cols, part.segment_end) / unit_columns,
            .works = warp <= last_panel,
            .row = least_of(row, last_row) * x.units,
            .to = thread < 2 * R   ? number_at
                  : thread < 3 * R ? scales_at + row
                                   : sums_at + row};
  }

  /// Of unit u, if the part has it.
  template <class Block>
  LETHE_BODY void ask(Block& block, const lane_place& l, uint32_t stage, uint32_t u) const {
    if (u < l.end) {
      const uint8_t* from =
          panel_at(place, l.tile.x * panels) + (l.panel + bytes_before_block<T>(u));
      for (uint32_t i = l.lane; i < panel_words / 4; i += warp_lanes) {
        uint32_t before = 0;
        if constexpr (header_bytes != 0) {
          if (16 * i >= header_bytes) before = bytes_before_unit<T>(u);
        }
        block.copy_four(stage_at(stage) + l.warp * panel_words + 4 * i, from + 16 * i + before);
      }
      ask_x(block, l, stage_at(stage) + l.to, u);
    }
    block.copies_asked();
  }
  template <class Block>
  LETHE_BODY void ask_x(Block& block, const lane_place& l, uint32_t to, uint32_t u) const {
    const uint32_t origin = segment_start<T>(place.cols, place.part.segment_begin) / unit_columns;
    const size_t first = x.place(l.tile.y * R, u - origin);
    if (block.thread() < 2 * R) {
      block.copy_four(to, x.rows.q + 32 * (first + l.row) + block.thread() % 2 * 16);
    } else if (block.thread() < 3 * R) {
      block.copy_word(to, x.rows.scales + (first + l.row));
    } else if (block.thread() < 4 * R) {
      block.copy_word(to, x.rows.sums + 2 * (first + l.row));
    }
  }

  template <class Block>
  LETHE_BODY static unit_of_row<T, in_shared_words<Block>> weights(Block& block, uint32_t stage,
                                                                   uint32_t panel, uint32_t row) {
    uint32_t at = stage_at(stage) + panel * panel_words;
    return {{block, at}, {block, at + header_bytes / 4}, row};
  }
  /// Of unit u, which lies in a stage; what it is of behind the last one nobody reads.
  template <class Block>
  LETHE_BODY static void put_factors(Block& block, const lane_place& l, uint32_t stage,
                                     uint32_t u) {
    const uint32_t thread = block.thread(), to = factors_of(u);
    if (u >= l.end) return;
    if (thread < rows) {
      auto unit = weights(block, stage, thread / panel_rows, thread % panel_rows);
      weight_factors<T> w(unit.scales());
      for (uint32_t i = 0; i < w.count; i++) block.put(to + weights_at + i * rows + thread, w.v[i]);
    } else if (thread < rows + R) {
      const uint32_t row = thread - rows;
      x_factors<T> of(block.get(stage_at(stage) + scales_at + row),
                      block.get_word(stage_at(stage) + sums_at + row));
      uint32_t at = to + row / 16 * 16 + row % 8 / 2 * 4 + row / 8 % 2 * 2 + row % 2;
      for (uint32_t i = 0; i < of.count; i++) block.put_word(at + i * R, of.v[i]);
    }
  }

  template <class Block>
  LETHE_BODY static void add(Block& block, const lane_place& l, uint32_t stage, uint32_t unit,
                             lane_sums<float> (&sums)[tiles]) {
    const uint32_t g = l.lane / 4, t = l.lane % 4, factors = factors_of(unit);
    packed_rows packed;
    for (uint32_t j = 0; j < 2; j++) {
      packed.row[j] = weights(block, stage, l.warp, g + 8 * j).read_pair(t);
    }
    uint32_t a[4];
    rows_of<T>(packed, l.lane, a);
    int8_tile_factors<T> f;
    for (uint32_t j = 0; j < 2; j++) {
      uint32_t at = factors + weights_at + l.warp * panel_rows + g + 8 * j;
      for (uint32_t i = 0; i < f.w[j].count; i++) f.w[j].v[i] = block.get(at + i * rows);
    }
    LETHE_UNROLL
    for (uint32_t sixteen = 0; sixteen < R / 16; sixteen++) {
      four_words of[x_factors<T>::count];
      for (uint32_t i = 0; i < x_factors<T>::count; i++) {
        of[i] = block.get_four(factors + i * R + sixteen * 16 + t * 4);
      }
      for (uint32_t tile = 0; tile < 2; tile++) {
        for (uint32_t j = 0; j < 2; j++) {
          for (uint32_t i = 0; i < f.x[j].count; i++) f.x[j].v[i] = of[i].v[tile * 2 + j];
        }
        uint32_t at = stage_at(stage) + numbers_at + (sixteen * 16 + tile * 8 + g) * 8 + t;
        uint32_t first = g / 4 * 4;
        uint32_t columns[2] = {block.get_word(at + first), block.get_word(at + (first ^ 4))};
        add_products<T>(block, a, columns, f, sums[sixteen * 2 + tile].c);
      }
    }
  }

  /// Of a lane's sums.
  struct outputs {
    uint32_t row, col, rows, cols;  // of the first; how many there are from the block's first on
    template <class Block>
    LETHE_BODY outputs(const int8_tile& of, Block& block, const tile_place& tile) {
      const product_part& part = of.place.part;
      const uint32_t thread = anew(block.thread());
      row = thread % 4 * 2, rows = of.place.rows - tile.y * R;
      // Before the part's first output: far beyond its last.
      col = (tile.x * panels + thread / warp_lanes) * panel_rows + thread % warp_lanes / 4 -
            part.row_begin % panel_rows;
      cols = part.row_end - part.row_begin;
    }
    LETHE_BODY sum_place place_of(uint32_t i) const {
      uint32_t r = row + i / 4 * 8 + i % 2, c = col + i % 4 / 2 * 8;
      return {least_of(r, rows - 1), least_of(c, cols - 1), r < rows && c < cols};
    }
  };
};

}  // namespace lethe::device
