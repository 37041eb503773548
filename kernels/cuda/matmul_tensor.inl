#pragma once

#include "kernels/cuda/matmul_join.inl"

// Products with f16 and bf16 weights by tensor cores. In which order these add is theirs; what they
// are given is fixed by a sum's place in the matrix alone: sixteen columns at a time from its
// segment's first, in one arrangement, whatever else the warp holds. So the number of rows of x,
// who they are and how many panels a block takes change no bits.

namespace lethe::device {

/// f16 is a tf32 as it is, bf16 has tensor cores of its own.
template <dtype T>
constexpr product_type tensor_type = T == dtype::bf16 ? product_type::bf16 : product_type::tf32;
constexpr uint32_t tensor_step = 16;  // columns that a lane has four of

/// A lane's four columns of a row of x, rounded, for product i of a step.
template <dtype T>
LETHE_BODY product_columns<tensor_type<T>> tensor_columns(const float (&x)[4], uint32_t i) {
  if constexpr (T == dtype::bf16) return {bf16_pair(x[0], x[1]), bf16_pair(x[2], x[3])};
  if constexpr (T != dtype::bf16) return {to_tf32(x[2 * i]), to_tf32(x[2 * i + 1])};
}
/// And of two rows of a panel, a word a column.
template <dtype T>
LETHE_BODY product_rows<tensor_type<T>> tensor_rows(const uint32_t (&w)[4], uint32_t i) {
  if constexpr (T == dtype::bf16) {
    return {low_halves(w[0], w[1]), high_halves(w[0], w[1]), low_halves(w[2], w[3]),
            high_halves(w[2], w[3])};
  } else {
    auto bits = [](uint32_t half) { return bits_of(from_f16(uint16_t(half))); };
    uint32_t first = w[2 * i], second = w[2 * i + 1];
    return {bits(first), bits(first >> 16), bits(second), bits(second >> 16)};
  }
}

/// What a lane has of a step: columns 4t to 4t + 3, of rows 2g and 2g + 1 of each panel (a word a
/// column) and of row 8c + g of x. So tensor cores' row g is the panel's 2g, row g + 8 its 2g + 1;
/// which column lies where is the same for both factors.
template <uint32_t P, uint32_t C>
struct step_numbers {
  uint32_t w[P][4];
  float x[C][4];
};
/// sums[p * C + c]: of panel p and rows 8c to 8c + 7 of x.
template <dtype T, uint32_t P, uint32_t C, class Block>
LETHE_BODY void add_step(Block& block, const step_numbers<P, C>& n,
                         product_sums<tensor_type<T>> (&sums)[P * C]) {
  constexpr product_type as = tensor_type<T>;
  for (uint32_t i = 0; i < tensor_step / facts_of(as).depth; i++) {
    product_columns<as> columns[C];
    for (uint32_t c = 0; c < C; c++) columns[c] = tensor_columns<T>(n.x[c], i);
    for (uint32_t p = 0; p < P; p++) {
      product_rows<as> rows = tensor_rows<T>(n.w[p], i);
      for (uint32_t c = 0; c < C; c++) {
        product_sums<as>& sum = sums[p * C + c];
        sum = block.template multiply<as>(rows, columns[c], sum);
      }
    }
  }
}

/// P panels with 8 * C rows of x. A warp for each segment of K.
template <dtype T, uint32_t P, uint32_t C>
struct tensor_products {
  static constexpr uint32_t threads = segments * warp_lanes, R = 8 * C;
  static constexpr bool early = true;
  static constexpr uint32_t step = tensor_step;
  static constexpr uint32_t ahead = P * C == 1 ? 4
                                    : P == 1   ? 2
                                               : 1;  // steps read before one is used
  static constexpr product_type as = tensor_type<T>;
  product_place place;
  const float* x;
  size_t stride;

  launch_shape shape() const {
    launch_shape panels = place.shape(R, join_words<R>);
    panels.x = blocks_for(panels.x, P);
    return panels;
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    lane_stretch s(*this, block);
    product_sums<as> sums[P * C] = {};
    numbers now = read(s, s.begin);
    LETHE_TWO_TURNS
    for (uint32_t k = s.begin; k < s.end; k += ahead * step) {
      numbers next = read(s, k + ahead * step);
      for (uint32_t i = 0; i < ahead; i++) {
        if (k + i * step < s.end) add_step<T, P, C>(block, now.of[i], sums);
      }
      now = next;
    }
    LETHE_UNROLL
    for (uint32_t p = 0; p < P; p++) {
      if (p > 0) block.barrier();
      store(block, p, sums + p * C);
    }
  }

 private:
  struct numbers {
    step_numbers<P, C> of[ahead];
  };

  /// A lane's own stretch of K.
  struct lane_stretch {
    uint32_t begin, end;  // columns of the segment; none if it is not in the part
    uint32_t g, t;
    const uint8_t* rows[P];  // of panels that are not there: of the first
    const float* x[C];       // as if it began with column 0 of the matrix; or the last row's
    bool whole;              // four columns of x can be read at once

    template <class Block>
    LETHE_BODY lane_stretch(const tensor_products& of, Block& block) {
      const product_part& part = of.place.part;
      const product_stretch s = stretch_of<T, warp_lanes>(block, of.place);
      begin = s.begin, end = s.end;
      g = s.lane / 4, t = s.lane % 4;
      for (uint32_t p = 0; p < P; p++) {
        uint32_t panel = block.x() * P + p;
        bool real = (part.row_begin / panel_rows + panel) * panel_rows < part.row_end;
        rows[p] = panel_at(of.place, real ? panel : block.x() * P) + 4 * g;
      }
      for (uint32_t c = 0; c < C; c++) {
        uint32_t row = block.y() * R + 8 * c + g;
        x[c] = of.x + least_of(row, of.place.rows - 1) * of.stride - s.origin;
      }
      whole =
          of.stride % 4 == 0 && reinterpret_cast<uintptr_t>(of.x + (begin - s.origin)) % 16 == 0;
    }
  };

  LETHE_BODY static numbers read(const lane_stretch& s, uint32_t k) {
    numbers n;
    if (s.whole && k + ahead * step <= s.end) {
      for (uint32_t i = 0; i < ahead; i++) n.of[i] = read_whole(s, k + i * step + 4 * s.t);
    } else {
      for (uint32_t i = 0; i < ahead; i++) n.of[i] = read_step(s, k + i * step + 4 * s.t);
    }
    return n;
  }
  /// Without a branch, behind which nvcc would wait for what was read before it.
  LETHE_BODY static step_numbers<P, C> read_whole(const lane_stretch& s, uint32_t k) {
    step_numbers<P, C> n;
    for (uint32_t p = 0; p < P; p++) {
      for (uint32_t j = 0; j < 4; j++) {
        n.w[p][j] = load<uint32_t>(s.rows[p] + size_t{k + j} * panel_rows * 2);
      }
    }
    for (uint32_t c = 0; c < C; c++) {
      four_words four = load<four_words>(s.x[c] + k);
      for (uint32_t j = 0; j < 4; j++) n.x[c][j] = from_bits(four.v[j]);
    }
    return n;
  }
  /// Zeros beyond the segment.
  LETHE_BODY static step_numbers<P, C> read_step(const lane_stretch& s, uint32_t k) {
    step_numbers<P, C> n;
    for (uint32_t p = 0; p < P; p++) {
      for (uint32_t j = 0; j < 4; j++) {
        bool real = k + j < s.end;
        n.w[p][j] = real ? load<uint32_t>(s.rows[p] + size_t{k + j} * panel_rows * 2) : 0;
      }
    }
    for (uint32_t c = 0; c < C; c++) {
      for (uint32_t j = 0; j < 4; j++) n.x[c][j] = k + j < s.end ? s.x[c][k + j] : 0.0f;
    }
    return n;
  }

  /// Of panel p of the block's.
  template <class Block>
  LETHE_BODY void store(Block& block, uint32_t p, const product_sums<as>* sums) const {
    uint32_t segment = block.thread() / warp_lanes, lane = block.thread() % warp_lanes;
    for (uint32_t c = 0; c < C; c++) {
      for (uint32_t i = 0; i < 4; i++) {
        uint32_t row = 8 * c + lane % 4 * 2 + i % 2, n = lane / 4 * 2 + i / 2;
        block.put((row * segments + segment) * panel_rows + n, sums[c].c[i]);
      }
    }
    block.barrier();
    store_joined<R, threads>(block, place, block.x() * P + p);
  }
};

}  // namespace lethe::device
