#pragma once

#include "kernels/cpu/attend_layout.inl"
#include "kernels/cpu/attend_tile.inl"

// int8 keys are multiplied as integers, with queries that are rounded as keys are: a score is
// (sum of q * k) * scale of the key * scale of the query. The sum is exact, in any order.

namespace lethe {
namespace {

/// A query's numbers, scaled already, rounded in place of its floats.
struct int8_query {
  float scale;
  int32_t correction;
};
inline int8_query round_query(float* numbers, uint32_t head_dim) {
  float amax = greatest_in(numbers, head_dim);
  lanes inverse = set1(127.0f / amax);
  int8_t* to = reinterpret_cast<int8_t*>(numbers);
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

struct int8_product {
  const int8_t* queries;
  size_t query_stride;
  const float* corrections;
  float* scores;

  int8_product of_row(size_t r) const {
    return {queries + r * query_stride, query_stride, corrections + r, scores + r * attention_tile};
  }
};

template <uint32_t rows, uint32_t vectors>
inline void score_block(const int8_product& p, const int8_keys& keys, uint32_t column,
                        uint32_t groups) {
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
  for (uint32_t g = 0; g < groups; g++) {
    key_numbers k[vectors];
#pragma GCC unroll 8
    for (uint32_t v = 0; v < vectors; v++) k[v] = key_numbers_at(key[v] + g * keys.step);
#pragma GCC unroll 8
    for (uint32_t r = 0; r < rows; r++) {
      byte_lanes four = four_bytes(p.queries + r * p.query_stride + 4 * g);
#pragma GCC unroll 8
      for (uint32_t v = 0; v < vectors; v++) sum[r][v] = add_key_products(sum[r][v], k[v], four);
    }
  }
#pragma GCC unroll 8
  for (uint32_t r = 0; r < rows; r++) {
#pragma GCC unroll 8
    for (uint32_t v = 0; v < vectors; v++) {
      store(p.scores + r * attention_tile + column + v * 16, to_float(sum[r][v]));
    }
  }
}

/// The sums of all queries with a tile's keys, not scaled.
inline void score_int8(const int8_product& all, uint32_t queries, const int8_keys& keys,
                       span_of_k vectors, uint32_t head_dim) {
  for_panels(vectors, [&](uint32_t column, auto width) {
    for_blocks(queries, [&](uint32_t q, uint32_t count) {
      int8_product p = all.of_row(q);
      by_count(count, [&]<uint32_t rows>(number<rows>) {
        score_block<rows, width.count>(p, keys, column, (head_dim + 3) / 4);
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

/// The next tile's keys and values, asked for while a tile's values are summed: its products are
/// too short for that.
struct coming_int8 {
  static constexpr uint32_t steps = attention_tile, places = attention_tile / 16, asks = 2;
  static constexpr uint32_t turns = steps * asks / places;  // of each place
  const std::byte *key[places], *value[places];
  size_t key_step, value_bytes;
  uint32_t key_lines;
  /// Not inlined, g++ takes it for a call without effect.
  [[gnu::always_inline]] void ask(uint32_t i) const {
#pragma GCC unroll 2
    for (uint32_t j = 0; j < asks; j++) {
      uint32_t place = (i * asks + j) % places, turn = i / (places / asks);
      __builtin_prefetch(key[place] + turn * key_lines / turns * key_step, 0, 2);
      __builtin_prefetch(value[place] + turn * value_bytes / turns, 0, 2);
    }
  }
};
/// With the scales, where a page holds one vector of 16 keys.
inline coming_int8 all_of(const kv_view& kv, const tile_places<int8_numbers>& places) {
  coming_int8 next{{},
                   {},
                   size_t{kv.page_tokens} * 4,
                   16 * kv_row_bytes(kv.type, kv.head_dim),
                   (kv.head_dim + 3) / 4 + 1};
  for (uint32_t v = 0; v < attention_tile / 16; v++) {
    next.key[v] = reinterpret_cast<const std::byte*>(places.at[v].key);
    next.value[v] = reinterpret_cast<const std::byte*>(places.at[v].value);
  }
  return next;
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
