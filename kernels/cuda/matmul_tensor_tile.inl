#pragma once

#include "kernels/cuda/matmul_tensor.inl"
#include "kernels/cuda/matmul_tree.inl"

// Products of many rows of x by tensor cores: a block multiplies 8 panels with 64 rows of x, all of
// K in order, a step of sixteen columns after the other. Both factors go through shared words, as
// tensor cores want them, and leave memory two steps ahead. A sum is given what tensor_products
// gives it.

namespace lethe::device {

template <dtype T>
struct tensor_tile {
  static constexpr uint32_t threads = 256, side_by_side = 2, panels = threads / warp_lanes, R = 64;
  static constexpr product_type as = tensor_type<T>;
  static constexpr uint32_t step = tensor_step, products = step / facts_of(as).depth;
  // A warp has two panels and half of the rows of x.
  static constexpr uint32_t P = 2, C = 4, tiles = P * C;
  product_place place;
  const float* x;
  size_t stride;

  launch_shape shape() const {
    return {blocks_for(place.panel_count(), panels), blocks_for(place.rows, R),
            tree::words + 2 * stage_words};
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    const product_part& part = place.part;
    const lane_place l(*this, block);
    stretch now{part.segment_begin, part.segment_begin, 0, 0};
    now.next_segment(place.cols, part.segment_end);
    uint32_t stage = 0;
    put(block, l, stage, read(l, now));
    stretch soon = now.after(place.cols, part.segment_end);
    step_numbers next = read(l, soon);
    block.barrier();
    for (uint32_t s = part.segment_begin; s < part.segment_end; s++) {
      product_sums<as> sums[tiles] = {};
      LETHE_TWO_TURNS
      while (now.segment == s && now.k < now.end) {
        stretch later = soon.after(place.cols, part.segment_end);
        step_numbers from = read(l, later);
        add(block, l, stage, sums);
        stage ^= 1;
        put(block, l, stage, next);
        block.barrier();
        now = soon, soon = later, next = from;
      }
      tree::finish(
          block, part, s, sums, [&](auto f) { for_outputs(block, f); }, place.to);
    }
  }

 private:
  // Of a step in shared words: panels [panel][lane][4]; x [16 rows][lane][tile of 8 rows][words].
  static constexpr uint32_t x_words = T == dtype::bf16 ? 2 : 4;  // of a lane and a tile
  static constexpr uint32_t x_at = panels * warp_lanes * 4;
  static constexpr uint32_t stage_words = x_at + R / 8 * warp_lanes * x_words;
  using tree = waiting_sums<tiles, threads>;
  static_assert(tree::words + 2 * stage_words <= shared_words_most);
  LETHE_BODY static uint32_t stage_at(uint32_t stage) { return tree::words + stage * stage_words; }

  /// Where a step is: columns [k, end) of a segment that has some; behind the last none.
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
      s.k = least_of(k + step, end);
      if (s.k == end) s.next_segment(cols, segments_end);
      return s;
    }
  };

  /// What a thread brings of a step: of its lane's panel four columns of two rows, of a row of x
  /// the same columns.
  struct step_numbers {
    uint32_t w[4];
    float x[4];
  };
  struct lane_place {
    uint32_t lane, warp;
    const uint8_t* panel;  // of those that are not there the first
    const float* x;        // as if it began with column 0 of the matrix; or the last row's
    bool whole;            // four columns of x can be read at once

    template <class Block>
    LETHE_BODY lane_place(const tensor_tile& of, Block& block)
        : lane(block.thread() % warp_lanes), warp(block.thread() / warp_lanes) {
      const product_part& part = of.place.part;
      uint32_t first = part.row_begin / panel_rows + block.x() * panels;
      bool real = (first + warp) * panel_rows < part.row_end;
      panel = panel_at(of.place, block.x() * panels + (real ? warp : 0)) + 4 * (lane / 4);
      uint32_t row = block.y() * R + warp * 8 + lane / 4;
      uint32_t origin = segment_start<T>(of.place.cols, part.segment_begin);
      x = of.x + least_of(row, of.place.rows - 1) * of.stride - origin;
      whole = of.stride % 4 == 0 && reinterpret_cast<uintptr_t>(of.x) % 16 == 0 && origin % 4 == 0;
    }
  };

  LETHE_BODY static step_numbers read(const lane_place& l, const stretch& s) {
    uint32_t k = s.k + l.lane % 4 * 4;
    step_numbers n{};
    if (l.whole && s.k % 4 == 0 && s.k + step <= s.end) {
      four_words four = load<four_words>(l.x + k);
      for (uint32_t j = 0; j < 4; j++) n.w[j] = word_at(l, k + j);
      for (uint32_t j = 0; j < 4; j++) n.x[j] = from_bits(four.v[j]);
    } else {
      for (uint32_t j = 0; j < 4 && k + j < s.end; j++) n.w[j] = word_at(l, k + j);
      for (uint32_t j = 0; j < 4 && k + j < s.end; j++) n.x[j] = l.x[k + j];
    }
    return n;
  }
  LETHE_BODY static uint32_t word_at(const lane_place& l, uint32_t k) {
    return load<uint32_t>(l.panel + size_t{k} * panel_rows * 2);
  }
  template <class Block>
  LETHE_BODY static void put(Block& block, const lane_place& l, uint32_t stage,
                             const step_numbers& n) {
    uint32_t w = stage_at(stage) + (l.warp * warp_lanes + l.lane) * 4;
    uint32_t to = stage_at(stage) + x_at + (l.warp / 2 * warp_lanes + l.lane) * 2 * x_words +
                  l.warp % 2 * x_words;
    if constexpr (T == dtype::bf16) {
      product_rows<as> rows = tensor_rows<T>(n.w, 0);
      product_columns<as> columns = tensor_columns<T>(n.x, 0);
      for (uint32_t i = 0; i < 4; i++) block.put_word(w + i, rows.a[i]);
      for (uint32_t i = 0; i < 2; i++) block.put_word(to + i, columns.b[i]);
    } else {
      for (uint32_t i = 0; i < 4; i++) block.put_word(w + i, n.w[i]);
      for (uint32_t i = 0; i < 2; i++) {
        product_columns<as> columns = tensor_columns<T>(n.x, i);
        for (uint32_t j = 0; j < 2; j++) block.put_word(to + 2 * i + j, columns.b[j]);
      }
    }
  }

  template <class Block>
  LETHE_BODY static void add(Block& block, const lane_place& l, uint32_t stage,
                             product_sums<as> (&sums)[tiles]) {
    uint32_t w = stage_at(stage) + (l.warp % 4 * P * warp_lanes + l.lane) * 4;
    uint32_t from = stage_at(stage) + x_at + (l.warp / 4 * 2 * warp_lanes + l.lane) * 2 * x_words;
    four_words rows[P];
    for (uint32_t p = 0; p < P; p++) rows[p] = block.get_four(w + p * warp_lanes * 4);
    for (uint32_t pair = 0; pair < C / 2; pair++) {
      four_words both[x_words / 2];
      for (uint32_t i = 0; i < x_words / 2; i++) {
        both[i] = block.get_four(from + pair * warp_lanes * 2 * x_words + 4 * i);
      }
      for (uint32_t i = 0; i < products; i++) {
        for (uint32_t c = 0; c < 2; c++) {
          // bf16: a tile's words in half a four; tf32: in a four, a product's in half of it.
          const four_words& of = both[T == dtype::bf16 ? 0 : c];
          uint32_t at = T == dtype::bf16 ? 2 * c : 2 * i;
          for (uint32_t p = 0; p < P; p++) {
            product_sums<as>& sum = sums[p * C + pair * 2 + c];
            sum = block.template multiply<as>(rows_in(rows[p], i), {of.v[at], of.v[at + 1]}, sum);
          }
        }
      }
    }
  }
  LETHE_BODY static product_rows<as> rows_in(const four_words& w, uint32_t i) {
    if constexpr (T == dtype::bf16) return {w.v[0], w.v[1], w.v[2], w.v[3]};
    if constexpr (T != dtype::bf16) return tensor_rows<T>(w.v, i);
  }

  /// f(i, row, column) of each of the lane's sums that is an output.
  template <class Block, class F>
  LETHE_BODY void for_outputs(Block& block, F f) const {
    const product_part& part = place.part;
    const uint32_t thread = anew(block.thread()), outputs = part.row_end - part.row_begin;
    const uint32_t lane = thread % warp_lanes, warp = thread / warp_lanes;
    const uint32_t first_row = block.y() * R + warp / 4 * 8 * C + lane % 4 * 2;
    // Before the part's first output: far beyond its last.
    const uint32_t first_col = (block.x() * panels + warp % 4 * P) * panel_rows + lane / 4 * 2 -
                               part.row_begin % panel_rows;
    LETHE_UNROLL
    for (uint32_t i = 0; i < 4 * tiles; i++) {
      uint32_t row = first_row + i / 4 % C * 8 + i % 2;
      uint32_t col = first_col + i / 4 / C * panel_rows + i % 4 / 2;
      if (col < outputs && row < place.rows) f(i, row, col);
    }
  }
};

}  // namespace lethe::device
