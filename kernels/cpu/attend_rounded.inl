#pragma once

#include "kernels/cpu/attend.inl"

// Attention over bf16 keys and values with queries and weights that are rounded to bf16, too. Of 32
// numbers of a key, or of 32 keys, those at even places are summed from zero, one after the other,
// and those at odd ones beside them; then both are added, and to what there is so far. Denormal
// numbers are zeros. That is what a tile does (attend_bf16_tiles.inl); few queries do it vector by
// vector. A query's arithmetic depends on its position alone.

namespace lethe {
namespace {

/// Numbers that are summed as one, and passes over them: even places, odd ones.
inline constexpr uint32_t bf16_together = 32, pass_numbers = bf16_together / 2;
inline uint32_t units_of_dim(uint32_t head_dim) {
  return (head_dim + bf16_together - 1) / bf16_together;
}

/// Floats rounded to bf16.
inline void round_floats(lanes first, lanes second, float* to) {
  alignas(64) uint16_t rounded[32];
  round_to_bf16(first, second, rounded);
  store(to, from_bf16(rounded));
  store(to + 16, from_bf16(rounded + 16));
}
struct rounded_floats : bf16_numbers {
  [[gnu::always_inline]] static void put_weights(const tile_scores& s, float* to) {
    for (uint32_t v = 0; v < attention_tile / 16; v += 2) round_floats(s[v], s[v + 1], to + v * 16);
  }
};

/// f(query, number, 16 floats, 16 more) for all numbers of all queries; zeros behind a query's
/// last.
template <class F>
inline void for_query_pairs(const attention_work& w, F f) {
  uint32_t head_dim = w.part.kv.head_dim;
  for (uint32_t q = 0; q < w.queries; q++) {
    const float* from = w.in(w.at.queries) + q * w.at.padded_dim;
    auto some = [&](uint32_t d) {
      return d < head_dim ? load_partial(from + d, head_dim - d) : zero();
    };
    for (uint32_t d = 0; d < head_dim; d += bf16_together) f(q, d, some(d), some(d + 16));
  }
}

/// Adds a product pass by pass. `b.each(pass, f)` gives f the pass's rows.
template <uint32_t rows, uint32_t vectors, class B>
[[gnu::noinline]] void add_passes(const product& p, const B& b, uint32_t passes, bool from_zero) {
  for (uint32_t pass = 0; pass < passes; pass += 2) {
    lanes of_pass[2][rows][vectors];
    for (uint32_t odd = 0; odd < 2; odd++) {
      lanes sum[rows][vectors];
#pragma GCC unroll 8
      for (uint32_t r = 0; r < rows; r++) {
#pragma GCC unroll 8
        for (uint32_t v = 0; v < vectors; v++) sum[r][v] = zero();
      }
      b.each(
          pass + odd, [&](size_t k, const lanes(&row)[vectors]) __attribute__((always_inline)) {
#pragma GCC unroll 8
            for (uint32_t r = 0; r < rows; r++) {
              lanes a = set1(p.a[r * p.a_stride + k]);
#pragma GCC unroll 8
              for (uint32_t v = 0; v < vectors; v++) sum[r][v] = fma(a, row[v], sum[r][v]);
            }
          });
#pragma GCC unroll 8
      for (uint32_t r = 0; r < rows; r++) {
#pragma GCC unroll 8
        for (uint32_t v = 0; v < vectors; v++) of_pass[odd][r][v] = sum[r][v];
      }
    }
    for (uint32_t r = 0; r < rows; r++) {
      for (uint32_t v = 0; v < vectors; v++) {
        float* to = p.c + p.column + r * p.c_stride + v * 16;
        lanes before = from_zero && pass == 0 ? zero() : load(to);
        store(to, add(before, add(of_pass[0][r][v], of_pass[1][r][v])));
      }
    }
  }
}

using bf16_coming = coming<bf16_numbers>;

/// Vectors of a tile's keys where they lie.
template <uint32_t vectors>
struct key_passes {
  page_keys<bf16_numbers, bf16_coming>::columns<vectors> keys;
  uint32_t head_dim;

  template <class F>
  [[gnu::always_inline]] void each(uint32_t pass, F f) const {
    uint32_t unit = pass / 2 * bf16_together, begin = pass * pass_numbers;
    uint32_t count = least_of(head_dim - unit, bf16_together) / 2;
    const uint16_t* key[vectors];
    size_t d = unit + pass % 2;
#pragma GCC unroll 8
    for (uint32_t v = 0; v < vectors; v++) key[v] = keys.key[v] + d * keys.step;
    size_t at = 0;
    keys.next.beside(
        {begin, begin + count}, [&](size_t) __attribute__((always_inline)) {
          lanes row[vectors];
#pragma GCC unroll 8
          for (uint32_t v = 0; v < vectors; v++) row[v] = from_bf16(key[v] + at);
          f(d, row);
          d += 2, at += 2 * keys.step;
        });
  }
};

/// Columns of a tile's values where they lie, of the keys that exist.
template <uint32_t vectors>
struct value_passes {
  page_values<bf16_numbers, bf16_coming>::columns values;
  span_of_k exist;

  template <class F>
  [[gnu::always_inline]] void each(uint32_t pass, F f) const {
    size_t step = values.values.step;
    for (uint32_t half = 0; half < 2; half++) {
      uint32_t place = pass / 2 * 2 + half, begin = pass * pass_numbers + half * pass_numbers / 2;
      uint32_t k = place * 16 + pass % 2;
      const uint16_t* value =
          values.values.places.at[place].value + pass % 2 * step + values.column;
      values.next.beside(
          {begin, begin + pass_numbers / 2}, [&](size_t) __attribute__((always_inline)) {
            if (exist.begin <= k && k < exist.end) {
              lanes row[vectors];
#pragma GCC unroll 8
              for (uint32_t v = 0; v < vectors; v++) row[v] = from_bf16(value + v * 16);
              f(k, row);
            }
            k += 2, value += 2 * step;
          });
    }
  }
};

/// f(first query, number<queries>) for all queries.
template <class F>
inline void for_few_queries(uint32_t queries, F f) {
  uint32_t q = 0;
  while (q < queries) {
    by_count(least_of(queries - q, block_rows), [&]<uint32_t n>(number<n> count) {
      f(q, count);
      q += n;
    });
  }
}

inline void score_by_passes(const attention_work& w, const tile_span& t,
                            const page_keys<bf16_numbers, bf16_coming>& keys) {
  product all{w.in(w.at.queries), w.at.padded_dim, w.in(w.at.scores), attention_tile};
  uint32_t head_dim = w.part.kv.head_dim;
  for_panels(vectors_within(t), [&]<uint32_t vectors>(uint32_t column, number<vectors>) {
    key_passes<vectors> panel{keys.template panel<vectors>(column), head_dim};
    for_few_queries(w.queries, [&]<uint32_t n>(uint32_t q, number<n>) {
      add_passes<n, vectors>(row_of(column_of(all, column), q), panel, 2 * units_of_dim(head_dim),
                             true);
    });
  });
}

inline void sum_by_passes(const attention_work& w, const tile_span& t,
                          const page_values<bf16_numbers, bf16_coming>& values) {
  product all{w.in(w.at.scores), attention_tile, w.in(w.at.sums), w.at.padded_dim};
  span_of_k exist{t.first - t.base, t.last - t.base};
  for_panels({0, uint32_t(w.at.padded_dim / 16)},
             [&]<uint32_t vectors>(uint32_t column, number<vectors>) {
               value_passes<vectors> panel{values.template panel<vectors>(column), exist};
               for_few_queries(w.queries, [&]<uint32_t n>(uint32_t q, number<n>) {
                 add_passes<n, vectors>(row_of(column_of(all, column), q), panel,
                                        attention_tile / pass_numbers, false);
               });
             });
}

/// A few queries take keys and values from where they lie.
inline void attend_by_passes(const attention_work& w) {
  for_query_pairs(w, [&](uint32_t q, uint32_t d, lanes first, lanes second) {
    float* to = w.in(w.at.queries) + q * w.at.padded_dim + d;
    if (d + 16 < w.at.padded_dim) return round_floats(first, second, to);
    float both[32];
    round_floats(first, second, both);
    store(to, load(both));
  });
  walk_pages<bf16_numbers, asking::by_halves>(
      w, [&](const tile_span& t, const auto& keys) { score_by_passes(w, t, keys); },
      [&](const tile_span& t) { weigh_all<rounded_floats>(w, t, [] {}); },
      [&](const tile_span& t, const auto& values) { sum_by_passes(w, t, values); });
}

}  // namespace
}  // namespace lethe
