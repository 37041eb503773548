#pragma once

#include "kernels/cpu/attend_layout.inl"
#include "kernels/cpu/attend_tile.inl"

// int8 keys are multiplied as integers, with queries that are rounded as keys are: a score is
// (sum of q * k) * scale of the key * scale of the query. So are values, with weights times their
// scales, of 15 bits: 32767ths of a tile's greatest. These sums are exact, in any order.

namespace lethe {
namespace {

struct int8_query {
  float scale;
  int32_t correction;
};
/// A query's numbers, scaled already, rounded; `to` may be where they begin, or before.
inline int8_query round_query(const float* numbers, uint32_t head_dim, int8_t* to) {
  float amax = greatest_in(numbers, head_dim);
  lanes inverse = set1(127.0f / amax);
  for (uint32_t d = 0; d < head_dim; d += 16) {
    lanes x = load_partial(numbers + d, least_of(16, head_dim - d));
    store_int8(to + d, round_to_int(mul(x, inverse)));
  }
  return {amax / 127.0f, key_correction(to, (head_dim + 15) / 16 * 16)};
}

/// A tile's keys: the groups of 16 keys' numbers lie `step` bytes apart.
struct int8_keys {
  const int8_t* at[attention_tile / 16];
  size_t step;
};

/// A tile's values: the first fours of each 16, four numbers for each column.
struct int8_values {
  const int8_t* at[attention_tile / 16];
};

/// The parts of a tile's work for coming_evenly: four numbers of a block's scores, or four keys of
/// its values. A query's weights take as long as so many.
inline constexpr uint32_t parts_of_weighing = 5;
inline uint32_t parts_of_tile(uint32_t queries, uint32_t head_dim) {
  auto blocks = [&](uint32_t columns, uint32_t rows) {
    uint32_t panels = (columns / 16 + block_vectors - 1) / block_vectors;
    return panels * ((queries + rows - 1) / rows);
  };
  return blocks(attention_tile, block_rows) * head_dim / 4 + parts_of_weighing * queries +
         blocks(head_dim, value_rows) * attention_tile / 4;
}

struct int8_product {
  const int8_t* queries;
  size_t query_stride;
  const float* corrections;
  int32_t* scores;

  int8_product of_row(size_t r) const {
    return {queries + r * query_stride, query_stride, corrections + r, scores + r * attention_tile};
  }
};

/// Not inlined: its loop needs the registers.
template <uint32_t rows, uint32_t vectors>
[[gnu::noinline]] void score_block(const int8_product& p, const int8_keys& keys, uint32_t column,
                                   uint32_t groups, coming_evenly& next) {
  int_lanes sum[rows][vectors];
  const int8_t* key[vectors];
#pragma GCC unroll 8
  for (uint32_t v = 0; v < vectors; v++) key[v] = keys.at[column / 16 + v];
#pragma GCC unroll 8
  for (uint32_t r = 0; r < rows; r++) {
    int_lanes correction = int_set1(__builtin_bit_cast(int32_t, p.corrections[r]));
#pragma GCC unroll 8
    for (uint32_t v = 0; v < vectors; v++) sum[r][v] = correction;
  }
  const int8_t* query = p.queries;
  size_t at = 0;
  auto add_group = [&]() __attribute__((always_inline)) {
    key_numbers k[vectors];
#pragma GCC unroll 8
    for (uint32_t v = 0; v < vectors; v++) k[v] = key_numbers_at(key[v] + at);
#pragma GCC unroll 8
    for (uint32_t r = 0; r < rows; r++) {
      byte_lanes four = four_bytes(query + r * p.query_stride);
#pragma GCC unroll 8
      for (uint32_t v = 0; v < vectors; v++) sum[r][v] = add_key_products(sum[r][v], k[v], four);
    }
    at += keys.step, query += 4;
  };
  for (; groups >= 4; groups -= 4) {
    next.ask(4);
#pragma GCC unroll 4
    for (uint32_t g = 0; g < 4; g++) add_group();
  }
  for (; groups > 0; groups--) add_group();
#pragma GCC unroll 8
  for (uint32_t r = 0; r < rows; r++) {
#pragma GCC unroll 8
    for (uint32_t v = 0; v < vectors; v++) {
      int_store(p.scores + r * attention_tile + column + v * 16, sum[r][v]);
    }
  }
}

/// The sums of all queries with a tile's keys, not scaled.
inline void score_int8(const int8_product& all, uint32_t queries, const int8_keys& keys,
                       span_of_k vectors, uint32_t head_dim, coming_evenly& next) {
  for_panels(vectors, [&](uint32_t column, auto width) {
    for_blocks<block_rows>(queries, [&](uint32_t q, uint32_t count) {
      int8_product p = all.of_row(q);
      by_count(count, [&]<uint32_t rows>(number<rows>) {
        score_block<rows, width.count>(p, keys, column, (head_dim + 3) / 4, next);
        p = p.of_row(rows);
      });
    });
  });
}

/// Keys in groups of four as [group][attention_tile], out of pages that don't hold whole vectors.
inline int8_keys copy_keys(const kv_view& kv, const tile_span& t, int8_t* to) {
  for (uint32_t i = t.first; i < t.last; i++) {
    const int8_t* key = place_of<int8_numbers>(kv, i).key;
    for (uint32_t g = 0; g < (kv.head_dim + 3) / 4; g++) {
      __builtin_memcpy(to + (g * attention_tile + i - t.base) * 4, key + g * kv.page_tokens * 4, 4);
    }
  }
  return {{to, to + 64, to + 128, to + 192}, attention_tile * 4};
}
inline int8_keys keys_in_pages(const kv_view& kv, const tile_places<int8_numbers>& places) {
  int8_keys keys{{}, size_t{kv.page_tokens} * 4};
  for (uint32_t v = 0; v < attention_tile / 16; v++) keys.at[v] = places.at[v].key;
  return keys;
}

/// Bytes from a query's weights to the next one's: they lie where its scores were.
inline constexpr size_t weights_step = attention_tile * sizeof(float);

/// A tile's weights, two bytes each, and what their sums count.
struct weighted_values {
  const int8_t* weights;
  const float* scales;
  float* sums;
  size_t sum_stride;

  weighted_values of_row(size_t r) const {
    return {weights + r * weights_step, scales + r, sums + r * sum_stride, sum_stride};
  }
};

/// Adds the values of vectors [begin, end) of 16 keys; to queries that see none of them, or see
/// only zeros, nothing. Not inlined, either.
template <uint32_t rows, uint32_t vectors>
[[gnu::noinline]] void add_value_block(const weighted_values& w, const int8_values& values,
                                       uint32_t column, span_of_k keys, coming_evenly& next) {
  value_sums sums[rows][vectors];
#pragma GCC unroll 8
  for (uint32_t r = 0; r < rows; r++) {
#pragma GCC unroll 8
    for (uint32_t j = 0; j < vectors; j++) sums[r][j] = no_values();
  }
  size_t step = w.sum_stride * 4;
  for (uint32_t k = keys.begin; k < keys.end; k++) {
    const int8_t *four = values.at[k] + column * 4,
                 *weights = w.weights + 4 * four_weights_bytes * k;
    next.ask(4);
    for (uint32_t i = 0; i < 4; i++, four += step, weights += four_weights_bytes) {
      value_numbers v[vectors];
#pragma GCC unroll 8
      for (uint32_t j = 0; j < vectors; j++) v[j] = value_numbers_at(four + 64 * j);
#pragma GCC unroll 8
      for (uint32_t r = 0; r < rows; r++) {
        four_weights by = weights_at(weights + r * weights_step);
#pragma GCC unroll 8
        for (uint32_t j = 0; j < vectors; j++) sums[r][j].add(v[j], by);
      }
    }
  }
#pragma GCC unroll 8
  for (uint32_t r = 0; r < rows; r++) {
    if (w.scales[r] == 0.0f) continue;
    lanes scale = set1(w.scales[r]);
    float* to = w.sums + r * w.sum_stride + column;
#pragma GCC unroll 8
    for (uint32_t j = 0; j < vectors; j++) {
      store(to + 16 * j, fma(sums[r][j].all(), scale, load(to + 16 * j)));
    }
  }
}

inline void add_values(const weighted_values& all, uint32_t queries, const int8_values& values,
                       span_of_k keys, coming_evenly& next) {
  for_panels({0, uint32_t(all.sum_stride / 16)}, [&](uint32_t column, auto width) {
    uint32_t q = 0;
    auto add = [&]<uint32_t rows>(number<rows>) {
      for (; q + rows <= queries; q += rows) {
        add_value_block<rows, width.count>(all.of_row(q), values, column, keys, next);
      }
    };
    add(number<value_rows>{});
    add(number<1>{});
  });
}

/// Values as four side by side, [fours][padded_dim][4], out of pages that don't hold them so.
inline int8_values copy_values(const kv_view& kv, const tile_span& t, int8_t* to,
                               size_t padded_dim) {
  for (uint32_t i = t.first; i < t.last; i++) {
    kv_place<int8_numbers> from = place_of<int8_numbers>(kv, i);
    uint32_t row = i - t.base;
    int8_t* at = to + row / 4 * 4 * padded_dim + row % 4;
    for (uint32_t d = 0; d < kv.head_dim; d++) at[4 * d] = from.value[d * from.value_step];
  }
  return {{to, to + 16 * padded_dim, to + 32 * padded_dim, to + 48 * padded_dim}};
}
inline int8_values values_in_pages(const tile_places<int8_numbers>& places) {
  int8_values values{};
  for (uint32_t v = 0; v < attention_tile / 16; v++) values.at[v] = places.at[v].value;
  return values;
}

/// The scales of a tile's keys and values side by side.
inline void load_scales(const tile_span& t, const tile_places<int8_numbers>& places, float* keys,
                        float* values) {
  span_of_k vectors = vectors_within(t);
  for (uint32_t v = vectors.begin; v < vectors.end; v++) {
    store(keys + v * 16, load(places.at[v].key_scale));
    store(values + v * 16, load(places.at[v].value_scale));
  }
}
inline void load_scales_one_by_one(const kv_view& kv, const tile_span& t, float* keys,
                                   float* values) {
  for (uint32_t i = t.first; i < t.last; i++) {
    kv_place<int8_numbers> at = place_of<int8_numbers>(kv, i);
    keys[i - t.base] = *at.key_scale;
    values[i - t.base] = *at.value_scale;
  }
}

}  // namespace
}  // namespace lethe
