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
  static constexpr uint32_t side_by_side = T == dtype::f32 ? 4 : 0;  // else nvcc spills
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
    for (uint32_t k = s.begin; k < s.end; k += columns_ahead<T>) add(s, k, rows, sums);
    store_products<R>(block, place, sums);
  }

 private:
  LETHE_BODY static void add(const product_stretch& s, uint32_t k, const float* const (&rows)[R],
                             float (&sums)[R]) {
    constexpr uint32_t ahead = columns_ahead<T>;
    float w[ahead];
    for (uint32_t i = 0; i < ahead; i++) {
      w[i] = k + i < s.end ? float_at<T>(s.panel, k + i, s.lane) : 0.0f;
    }
    for (uint32_t i = 0; i < ahead; i++) {
      if (k + i >= s.end) break;
      for (uint32_t r = 0; r < R; r++) sums[r] = fused(w[i], rows[r][k + i - s.origin], sums[r]);
    }
  }
};

/// Many rows of x, sixteen a block: a step of each segment at a time in shared words
/// [segment][k][row].
template <dtype T>
struct float_tile {
  static constexpr uint32_t threads = product_threads, R = tile_rows, step = 16;
  // Four words more, so that the two segments of a warp read different banks.
  static constexpr uint32_t segment_words = step * R + 4;
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
    weights now = read(s, s.begin);
    for (uint32_t k = s.begin, done = 0; done < longest; done += step, k += step) {
      uint32_t count = k < s.end ? least_of(step, s.end - k) : 0;
      fetch(block, s, k, count);
      block.barrier();
      weights next = read(s, k + step);
      add(block, s, now, count, sums);
      now = next;
      block.barrier();
    }
    store_products<R>(block, place, sums);
  }

 private:
  struct weights {
    float w[step];
  };
  /// Asked for one step ahead, so that they come while the one before is multiplied.
  LETHE_BODY static weights read(const product_stretch& s, uint32_t k) {
    weights of;
    for (uint32_t i = 0; i < step; i++) {
      of.w[i] = k + i < s.end ? float_at<T>(s.panel, k + i, s.lane) : 0.0f;
    }
    return of;
  }
  /// Row s.lane of x, the thread's own segment.
  template <class Block>
  LETHE_BODY void fetch(Block& block, const product_stretch& s, uint32_t k, uint32_t count) const {
    uint32_t row = block.y() * R + s.lane;
    const float* from = x + least_of(row, place.rows - 1) * stride;
    for (uint32_t i = 0; i < count; i++) {
      block.put(s.segment * segment_words + i * R + s.lane, from[k + i - s.origin]);
    }
  }
  template <class Block>
  LETHE_BODY static void add(Block& block, const product_stretch& s, const weights& w,
                             uint32_t count, float (&sums)[R]) {
    LETHE_UNROLL
    for (uint32_t i = 0; i < step; i++) {
      if (i >= count) break;
      for (uint32_t r = 0; r < R; r += 4) {
        four_words four = block.get_four(s.segment * segment_words + i * R + r);
        for (uint32_t j = 0; j < 4; j++) {
          sums[r + j] = fused(w.w[i], from_bits(four.v[j]), sums[r + j]);
        }
      }
    }
  }
};

}  // namespace lethe::device
