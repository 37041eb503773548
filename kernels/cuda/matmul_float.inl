#pragma once

#include "kernels/cuda/matmul_join.inl"

// Products with f32, f16 and bf16 weights: every multiply-add fused, each k after the one before.

namespace lethe::device {

template <dtype T>
constexpr uint32_t columns_ahead = T == dtype::f32 ? 16 : 32;  // 64 bytes a thread

/// R rows of x, each read by all threads at once.
template <dtype T, uint32_t R>
struct float_rows {
  static constexpr uint32_t threads = product_threads;
  static constexpr uint32_t ahead = R > 1 ? 8 : columns_ahead<T>;
  static constexpr bool early = true;
  /// Registers for all that is on its way: unasked, nvcc saves them and waits.
  static constexpr uint32_t side_by_side = 4;
  product_place place;
  const float* x;
  size_t stride;

  launch_shape shape() const { return place.shape(R, join_words<R>); }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    product_stretch s = stretch_of<T>(block, place);
    float sums[R] = {};
    const float* rows[R];
    for (uint32_t r = 0; r < R; r++) {
      rows[r] = x + least_of(block.y() * R + r, place.rows - 1) * stride;
    }
    uint32_t k = s.begin;
    for (; k + ahead <= s.end; k += ahead) add<ahead>(s, k, rows, sums);
    for (; k < s.end; k++) add<1>(s, k, rows, sums);
    store_products<R>(block, place, sums);
  }

 private:
  /// Without a branch between reading and adding: nvcc puts a load behind the branch that it can
  /// wait for, and then each column waits for memory.
  template <uint32_t count>
  LETHE_BODY static void add(const product_stretch& s, uint32_t k, const float* const (&rows)[R],
                             float (&sums)[R]) {
    float w[count];
    for (uint32_t i = 0; i < count; i++) w[i] = float_at<T>(s.panel, k + i, s.lane);
    for (uint32_t i = 0; i < count; i++) {
      for (uint32_t r = 0; r < R; r++) sums[r] = fused(w[i], rows[r][k + i - s.origin], sums[r]);
    }
  }
};

/// Many rows of x, sixteen a block: a step of each segment at a time in shared words
/// [segment][k][row of x].
template <dtype T>
struct float_tile {
  static constexpr uint32_t threads = product_threads, R = 16, step = 16;
  static_assert(step == panel_rows);  // a thread fetches a column of each row
  // Four words more a column, so that few of a row's are in one bank, and four more a segment, so
  // that the two of a warp read different ones.
  static constexpr uint32_t pitch = R + 4, segment_words = step * pitch + 4;
  product_place place;
  const float* x;
  size_t stride;

  launch_shape shape() const {
    return place.shape(
        R, segments * segment_words > join_words<R> ? segments * segment_words : join_words<R>);
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    product_stretch s = stretch_of<T>(block, place);
    float sums[R] = {};
    uint32_t longest = longest_segment<T>(place.cols);
    numbers now = read(block, s, s.begin);
    LETHE_TWO_TURNS
    for (uint32_t k = s.begin, done = 0; done < longest; done += step, k += step) {
      uint32_t count = k < s.end ? least_of(step, s.end - k) : 0;
      put(block, s, now);
      block.barrier();
      numbers next = read(block, s, k + step);
      add(block, s, now, count, sums);
      now = next;
      block.barrier();
    }
    store_products<R>(block, place, sums);
  }

 private:
  /// A step of a row of weights, and of every row of x column s.lane of the step.
  struct numbers {
    float w[step], x[R];
  };
  /// Asked for one step ahead, so that they come while the one before is multiplied. Behind the
  /// end the last column again. Of x a segment's threads read what lies together.
  template <class Block>
  LETHE_BODY numbers read(Block& block, const product_stretch& s, uint32_t k) const {
    numbers of{};
    if (s.begin == s.end) return of;
    for (uint32_t i = 0; i < step; i++) {
      of.w[i] = float_at<T>(s.panel, least_of(k + i, s.end - 1), s.lane);
    }
    const float* column = x + (least_of(k + s.lane, s.end - 1) - s.origin);
    for (uint32_t r = 0; r < R; r++) {
      of.x[r] = column[least_of(block.y() * R + r, place.rows - 1) * stride];
    }
    return of;
  }
  template <class Block>
  LETHE_BODY static void put(Block& block, const product_stretch& s, const numbers& of) {
    for (uint32_t r = 0; r < R; r++) {
      block.put(s.segment * segment_words + s.lane * pitch + r, of.x[r]);
    }
  }
  template <class Block>
  LETHE_BODY static void add(Block& block, const product_stretch& s, const numbers& of,
                             uint32_t count, float (&sums)[R]) {
    LETHE_UNROLL
    for (uint32_t i = 0; i < step; i++) {
      if (i >= count) break;
      for (uint32_t r = 0; r < R; r += 4) {
        four_words four = block.get_four(s.segment * segment_words + i * pitch + r);
        for (uint32_t j = 0; j < 4; j++) {
          sums[r + j] = fused(of.w[i], from_bits(four.v[j]), sums[r + j]);
        }
      }
    }
  }
};

}  // namespace lethe::device
