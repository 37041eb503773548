#pragma once

#include "kernels/cpu/lanes_math.inl"

namespace lethe {
namespace {

/// c[row][column] += sum over k of a[row][k] * b[k][column], one k after the other. What b is, the
/// functions below are told beside: b.panel<n>(column) has each(k, f), which gives f n vectors of
/// each row k from that column on; b's `together` are the rows of a that go with them at most, its
/// `terms` what is added for a number of a and one of b.
struct product {
  const float* a;
  size_t a_stride;
  float* c;
  size_t c_stride;
  uint32_t column = 0;
};

/// The k that a row of a product takes.
struct span_of_k {
  uint32_t begin, end;
};

/// Sums kept in registers at once: rows x vectors of them. Where one register holds all 16 lanes
/// there are 32 registers, else 16 that hold half. Four rows are eight of those, just what keeps
/// two multipliers busy whose results come four cycles later: the least delay shows. Floats leave
/// registers for six; whole ones have them anyway, and six rows need fewer loads for a product.
constexpr bool whole_registers = alignof(lanes) == sizeof(lanes);
constexpr uint32_t block_rows = 4, wide_rows = 6;
constexpr uint32_t block_vectors = whole_registers ? 4 : 1;

template <uint32_t n>
struct number {
  static constexpr uint32_t count = n;
};

/// Rows of floats.
struct float_rows {
  using terms = of_floats;
  static constexpr uint32_t together = wide_rows;
  const float* at;
  size_t stride;

  template <uint32_t vectors>
  float_rows panel(uint32_t column) const {
    return {at + column, stride};
  }
  template <uint32_t vectors, class F>
  [[gnu::always_inline]] void each(span_of_k k, F f) const {
    for (size_t i = k.begin; i < k.end; i++) {
      lanes row[vectors];
#pragma GCC unroll 8
      for (uint32_t v = 0; v < vectors; v++) row[v] = load(at + i * stride + v * 16);
      f(i, row);
    }
  }
};

template <uint32_t rows, uint32_t vectors, class B>
inline void multiply_block(const product& p, const B& b, span_of_k k, bool from_zero) {
  lanes sum[rows][vectors];
  float* c = p.c + p.column;
#pragma GCC unroll 8
  for (uint32_t r = 0; r < rows; r++) {
#pragma GCC unroll 8
    for (uint32_t v = 0; v < vectors; v++) {
      sum[r][v] = from_zero ? zero() : load(c + r * p.c_stride + v * 16);
    }
  }
  b.template panel<vectors>(p.column).template each<vectors>(
      k, [&](size_t i, const lanes(&row)[vectors]) __attribute__((always_inline)) {
#pragma GCC unroll 8
        for (uint32_t r = 0; r < rows; r++) {
          lanes a = set1(p.a[r * p.a_stride + i]);
#pragma GCC unroll 8
          for (uint32_t v = 0; v < vectors; v++) sum[r][v] = B::terms::add(row[v], a, sum[r][v]);
        }
      });
#pragma GCC unroll 8
  for (uint32_t r = 0; r < rows; r++) {
#pragma GCC unroll 8
    for (uint32_t v = 0; v < vectors; v++) store(c + r * p.c_stride + v * 16, sum[r][v]);
  }
}

/// f(number<n>) for `rows` rows (at most block_rows): for all of a block, else for two, for one.
template <class F>
inline void by_count(uint32_t rows, F f) {
  if (rows == block_rows) return f(number<block_rows>{});
  if (rows >= 2) f(number<2>{});
  if (rows % 2 == 1) f(number<1>{});
}

inline product row_of(product p, uint32_t row) {
  p.a += row * p.a_stride, p.c += row * p.c_stride;
  return p;
}

/// Not inlined: it would take room from what is.
template <uint32_t vectors, class B>
[[gnu::noinline]] void multiply_wide(const product& p, const B& b, span_of_k k, bool from_zero) {
  multiply_block<B::together, vectors>(p, b, k, from_zero);
}

/// The product of `rows` rows (B's `together`, or block_rows at most), 16 * vectors columns.
template <uint32_t vectors, class B>
inline void multiply_rows(product p, const B& b, uint32_t rows, span_of_k k, bool from_zero) {
  if constexpr (B::together > block_rows) {
    if (rows == B::together) return multiply_wide<vectors>(p, b, k, from_zero);
  }
  by_count(rows, [&]<uint32_t n>(number<n>) {
    multiply_block<n, vectors>(p, b, k, from_zero);
    p.a += n * p.a_stride, p.c += n * p.c_stride;
  });
}

inline product column_of(product p, uint32_t column) {
  p.column = column;
  return p;
}

/// f(first row, rows) for blocks of `widest` rows, then of block_rows; the last eight are twice
/// four.
template <uint32_t widest, class F>
inline void for_blocks(uint32_t rows, F f) {
  uint32_t r = 0;
  if constexpr (widest > block_rows) {
    for (; rows - r >= widest && rows - r != 2 * block_rows; r += widest) f(r, widest);
  }
  for (; r < rows; r += block_rows) f(r, least_of(block_rows, rows - r));
}

/// f(first column, number<n>) for blocks of the columns of vectors [begin, end).
template <class F>
inline void for_panels(span_of_k vectors, F f) {
  uint32_t v = vectors.begin;
  for (; v + block_vectors <= vectors.end; v += block_vectors) {
    f(v * 16, number<block_vectors>{});
  }
  for (; v < vectors.end; v++) f(v * 16, number<1>{});
}

}  // namespace
}  // namespace lethe
