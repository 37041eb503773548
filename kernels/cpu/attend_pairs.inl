#pragma once

#include "kernels/cpu/attend_paired.inl"

// Attention over bf16 keys and values with queries and weights that are rounded to bf16, too, two
// numbers at once: a query's sums are what those of matmul_pairs.inl are, over the numbers of a key
// from zero on, over keys from one tile to the next.

namespace lethe {
namespace {

/// Pairs as rows of a product, in tiles of 16 of them by 16 columns.
struct paired_rows {
  using terms = of_pairs;
  static constexpr uint32_t together = wide_rows;
  const paired_tile* first;
  size_t across;  // tiles side by side

  template <uint32_t>
  paired_rows panel(uint32_t column) const {
    return {first + column / 16, across};
  }
  template <uint32_t vectors, class F>
  [[gnu::always_inline]] void each(span_of_k k, F f) const {
    for (uint32_t i = k.begin; i < k.end; i++) {
      const paired_tile* tiles = first + i / 16 * across;
      lanes row[vectors];
#pragma GCC unroll 8
      for (uint32_t v = 0; v < vectors; v++) row[v] = load((const float*)tiles[v][i % 16]);
      f(i, row);
    }
  }
};

/// Pairs of numbers of a tile's keys, made of where those lie.
struct pairs_of_keys {
  using terms = of_pairs;
  static constexpr uint32_t together = block_rows;
  page_keys<bf16_numbers, bf16_coming> keys;

  template <uint32_t vectors>
  struct columns {
    page_keys<bf16_numbers, bf16_coming>::columns<vectors> keys;

    template <uint32_t, class F>
    [[gnu::always_inline]] void each(span_of_k k, F f) const {
      size_t at = 2 * k.begin * keys.step;
      for (uint32_t i = k.begin; i < k.end; i++, at += 2 * keys.step) {
        keys.next.ask(2 * i);
        lanes row[vectors];
#pragma GCC unroll 8
        for (uint32_t v = 0; v < vectors; v++)
          row[v] = in_pairs(keys.key[v] + at, keys.key[v] + at + keys.step);
        f(i, row);
      }
    }
  };
  template <uint32_t vectors>
  columns<vectors> panel(uint32_t column) const {
    return {keys.template panel<vectors>(column)};
  }
};

/// Pairs of a tile's values, those of keys that exist; beside one that does not there are zeros.
struct pairs_of_values {
  using terms = of_pairs;
  static constexpr uint32_t together = block_rows;
  page_values<bf16_numbers, bf16_coming> values;
  span_of_k exist;

  struct columns {
    page_values<bf16_numbers, bf16_coming>::columns values;
    span_of_k exist;

    template <uint32_t vectors, class F>
    [[gnu::always_inline]] void each(span_of_k k, F f) const {
      size_t step = values.values.step;
      for (uint32_t i = k.begin; i < k.end; i++) {
        values.next.ask(2 * i);
        const uint16_t* first =
            values.values.places.at[i / 8].value + 2 * i % 16 * step + values.column;
        bool has_first = exist.begin <= 2 * i, has_second = 2 * i + 1 < exist.end;
        lanes row[vectors];
#pragma GCC unroll 8
        for (uint32_t v = 0; v < vectors; v++) {
          const uint16_t* one = first + v * 16;
          row[v] = in_pairs(has_first ? one : no_numbers, has_second ? one + step : no_numbers);
        }
        f(i, row);
      }
    }
  };
  template <uint32_t vectors>
  columns panel(uint32_t column) const {
    return {values.template panel<vectors>(column), exist};
  }
  span_of_k pairs() const { return {exist.begin / 2, (exist.end + 1) / 2}; }
};

template <class B>
inline void multiply_by_pairs(const product& all, uint32_t rows, const B& by, span_of_k columns,
                              span_of_k pairs, bool from_zero) {
  for_panels(columns, [&](uint32_t column, auto width) {
    for_blocks<B::together>(rows, [&](uint32_t r, uint32_t count) {
      multiply_rows<width.count>(row_of(column_of(all, column), r), by, count, pairs, from_zero);
    });
  });
}

void attend_pairs(const attention_work& w) {
  denormals_are_zeros mode;
  const kv_view& kv = w.part.kv;
  uint32_t panels = uint32_t(w.at.padded_dim / 16);
  span_of_k of_key{0, (kv.head_dim + 1) / 2};
  product scores{(const float*)rounded_queries(w), w.at.padded_dim, w.in(w.at.scores),
                 attention_tile};
  product sums{(const float*)rounded_weights(w), attention_tile, w.in(w.at.sums), w.at.padded_dim};
  auto score = [&](const tile_span& t, const auto& keys) {
    multiply_by_pairs(scores, w.queries, keys, vectors_within(t), of_key, true);
  };
  auto sum = [&](const auto& values, span_of_k pairs) {
    multiply_by_pairs(sums, w.queries, values, {0, panels}, pairs, false);
  };
  round_queries(w);
  if (in_pages(w)) {
    walk_pages<bf16_numbers>(
        w, [&](const tile_span& t, const auto& keys) { score(t, pairs_of_keys{keys}); },
        [&](const tile_span& t) { weigh_all<rounded_numbers>(w, t, [] {}); },
        [&](const tile_span& t, const auto& values) {
          pairs_of_values all{values, {t.first - t.base, t.last - t.base}};
          sum(all, all.pairs());
        });
  } else {
    paired_keys made(w);
    walk_pairs(
        w,
        [&](const tile_span& t) {
          score(t, paired_rows{made.keys, attention_tile / 16});
        },
        [&](const tile_span&) {
          sum(paired_rows{made.values, panels}, {0, attention_tile / 2});
        });
  }
}

}  // namespace
}  // namespace lethe
