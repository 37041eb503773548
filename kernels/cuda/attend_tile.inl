#pragma once

#include "kernels/cuda/kv_rows.inl"

// What decode and prefill share: tiles of 64 keys by absolute position, the CPU's order. Within a
// tile a score is summed along the head (of int8 keys in integers, with queries rounded as keys
// are, and scaled then), and a tile's weights as four vectors of 16 lanes and then
// the lanes' tree; what a query has summed is brought to a new greatest score, and each of its
// sums takes the values key by key, int8's a tile at once: a sum of integers, scaled then.

namespace lethe::device {

constexpr uint32_t slice = 32;               // elements of rows that are in shared words at once
constexpr uint32_t slice_words = slice + 1;  // a column of keys lies in different banks
constexpr uint32_t keys_words = attention_tile * slice_words;
constexpr uint32_t table_words = 2 * attention_tile;

/// What makes scores of products: weights are powers of two.
LETHE_BODY float score_scale(const device_attention& a) { return a.scale * log2_e; }

LETHE_BODY float minus_infinity() { return -from_bits(0x7f800000); }

LETHE_BODY uint32_t first_seen(uint32_t position, uint32_t window) {
  return window == 0 || position < window ? 0 : position + 1 - window;
}

/// Keys [begin, end) counted from the tile's first.
struct tile_keys {
  uint32_t begin, end;
  LETHE_BODY bool has(uint32_t key) const { return key >= begin && key < end; }
  /// The key, or of keys that are not there the nearest; not of none. What is read of it needs no
  /// branch then, behind which nvcc would put the load, so that each one waits for the one before.
  LETHE_BODY uint32_t near(uint32_t key) const {
    return least_of(greatest_of(key, begin), end - 1);
  }
};

/// Keys from `first` to `last` (the query's own) that lie in the tile at `base`.
LETHE_BODY tile_keys keys_within(uint32_t base, uint32_t first, uint32_t last) {
  uint32_t begin = greatest_of(first, base), end = least_of(last + 1, base + attention_tile);
  return begin < end ? tile_keys{begin - base, end - base} : tile_keys{0, 0};
}

/// The query heads of a part that read one kv head: [begin, end).
struct head_range {
  uint32_t begin, end;
};
LETHE_BODY head_range heads_of(const device_attention& a, uint32_t kv_head) {
  uint32_t begin = kv_head * a.group, end = begin + a.group;
  return {begin > a.first_head ? begin - a.first_head : 0,
          least_of(end > a.first_head ? end - a.first_head : 0, a.heads)};
}

/// Up to `most` queries of a run that read one kv head: a query is one head of one token, tokens
/// outermost. `place`: the run's number times all kv heads, plus the head.
struct queries_of_run {
  token_run run;
  head_range heads;
  uint32_t first, count;

  LETHE_BODY queries_of_run(const device_attention& a, uint32_t place, uint32_t from, uint32_t most)
      : run(a.runs[place / a.kv_heads]), heads(heads_of(a, place % a.kv_heads)), first(from) {
    uint32_t all = run.tokens * (heads.end - heads.begin);
    count = from < all ? least_of(most, all - from) : 0;
  }
  LETHE_BODY uint32_t token(uint32_t q) const { return (first + q) / (heads.end - heads.begin); }
  LETHE_BODY uint32_t head(uint32_t q) const {
    return heads.begin + (first + q) % (heads.end - heads.begin);
  }
  LETHE_BODY uint32_t position(uint32_t q) const { return run.position + token(q); }
  LETHE_BODY uint32_t kv_head(const device_attention& a) const {
    return (a.first_head + heads.begin) / a.group;
  }
  /// What query q sees of the tile at `base`.
  LETHE_BODY tile_keys seen(const device_attention& a, uint32_t q, uint32_t base) const {
    if (q >= count) return {0, 0};
    return keys_within(base, first_seen(position(q), a.window), position(q));
  }
};

/// Where rows of a tile lie, into shared words from `table` on: two a row. Divisions by the page's
/// size would cost more than what is done with a number of the row.
template <class Block>
LETHE_BODY void locate(Block& block, uint32_t threads, const kv_place& place, uint32_t base,
                       tile_keys keys, uint32_t table) {
  for (uint32_t key = block.thread(); key < attention_tile; key += threads) {
    if (!keys.has(key)) continue;
    uint64_t offset = place.offset(base + key);
    block.put_word(table + 2 * key, uint32_t(offset));
    block.put_word(table + 2 * key + 1, uint32_t(offset >> 32));
  }
}
template <class Block>
LETHE_BODY const uint8_t* located(Block& block, const kv_place& place, uint32_t key,
                                  uint32_t table) {
  uint64_t high = block.get_word(table + 2 * key + 1);
  return place.head + (high << 32 | block.get_word(table + 2 * key));
}

/// int8 numbers are multiplied four at once, exactly.
template <kv_type K>
constexpr uint32_t numbers_a_word = kv_key_group(K);
template <kv_type K>
using score_sum = std::conditional_t<K == kv_type::int8, int32_t, float>;
/// A number as it is multiplied, and as it lies in a shared word.
template <kv_type K>
LETHE_BODY score_sum<K> number_of(const uint8_t* row, uint32_t d) {
  if constexpr (K == kv_type::int8) {
    return int8_t(row[d]);
  } else {
    return kv_element<K>(row, d);
  }
}
template <kv_type K>
LETHE_BODY score_sum<K> number_in(uint32_t word) {
  if constexpr (K == kv_type::int8) {
    return int32_t(word);
  } else {
    return from_bits(word);
  }
}
LETHE_BODY uint32_t word_of(float x) { return bits_of(x); }
LETHE_BODY uint32_t word_of(int32_t x) { return uint32_t(x); }

/// A slice of a tile's keys into shared words [key][slice_words]; other keys are zeros.
template <kv_type K, uint32_t threads, class Block>
LETHE_BODY void fetch_keys(Block& block, const kv_place& place, tile_keys keys, uint32_t table,
                           uint32_t head_dim, uint32_t d0) {
  constexpr uint32_t each = numbers_a_word<K>, words = slice / each, step = threads / words;
  uint32_t at = block.thread() % words, first = block.thread() / words, d = d0 + at * each;
  uint32_t word[attention_tile / step];
  for (uint32_t i = 0; i < attention_tile / step; i++) {
    const uint8_t* row = located(block, place, keys.near(first + i * step), table);
    uint32_t near = d < head_dim ? d : 0;
    if constexpr (K == kv_type::int8) {
      word[i] = load<uint32_t>(row + near);
    } else {
      word[i] = bits_of(kv_element<K>(row, near));
    }
  }
  for (uint32_t i = 0; i < attention_tile / step; i++) {
    uint32_t key = first + i * step;
    block.put_word(key * slice_words + at, keys.has(key) && d < head_dim ? word[i] : 0);
  }
}

/// A query of one head; one without numbers stands for none.
struct query_row {
  const float* q = nullptr;
  uint32_t head_dim = 0;
  float scale = 0.0f;

  /// The greatest of its scaled numbers, by a warp.
  template <class Block>
  LETHE_BODY float greatest(Block& block) const {
    float amax = 0.0f;
    for (uint32_t d = block.thread() % warp_lanes; d < head_dim; d += warp_lanes) {
      amax = greater_of(absolute(q[d] * scale), amax);
    }
    for (uint32_t m = warp_lanes / 2; m > 0; m /= 2) {
      amax = greater_of(block.shuffle_xor(amax, m), amax);
    }
    return amax;
  }
  /// The shared word that number d begins.
  template <kv_type K>
  LETHE_BODY uint32_t word(uint32_t d, float amax) const {
    if (d >= head_dim) return 0;
    if constexpr (K != kv_type::int8) return bits_of(q[d] * scale);
    float inverse = 127.0f / amax;
    uint32_t four = 0;
    for (uint32_t i = 0; i < 4 && d + i < head_dim; i++) {
      four |= uint32_t(uint8_t(round_to_int(q[d + i] * scale * inverse))) << 8 * i;
    }
    return four;
  }
};

/// Queries that a block scores at once, in shared words from `at` on: [query][slice], and behind
/// them the greatest number of each, which int8 is rounded by.
template <kv_type K, uint32_t threads, uint32_t queries, uint32_t at>
struct query_words {
  static constexpr uint32_t greatest_at = at + queries * slice, end = greatest_at + queries;

  /// of(i): query i. Waits for those who read what the queries before left, and for all to be
  /// found.
  template <class Block, class Of>
  LETHE_BODY static void find_greatest(Block& block, Of of) {
    if constexpr (K == kv_type::int8) {
      block.barrier();
      for (uint32_t i = block.thread() / warp_lanes; i < queries; i += threads / warp_lanes) {
        float amax = of(i).greatest(block);
        if (block.thread() % warp_lanes == 0) block.put(greatest_at + i, amax);
      }
      block.barrier();
    }
  }
  template <class Block>
  LETHE_BODY static float greatest(Block& block, uint32_t i) {
    return K == kv_type::int8 ? block.get(greatest_at + i) : 0.0f;
  }
  template <class Block, class Of>
  LETHE_BODY static void fetch(Block& block, uint32_t d0, Of of) {
    constexpr uint32_t each = numbers_a_word<K>, words = slice / each;
    for (uint32_t i = block.thread(); i < queries * words; i += threads) {
      uint32_t query = i / words, w = i % words;
      uint32_t word = of(query).template word<K>(d0 + w * each, greatest(block, query));
      block.put_word(at + query * slice + w, word);
    }
  }
  /// sums[i] += the products of a slice of `key` and of query first + i.
  template <uint32_t count, class Block>
  LETHE_BODY static void add(Block& block, uint32_t key, uint32_t first, uint32_t numbers,
                             score_sum<K> (&sums)[count]) {
    uint32_t words = blocks_for(least_of(slice, numbers), numbers_a_word<K>);
    for (uint32_t w = 0; w < words; w++) {
      uint32_t k = block.get_word(key * slice_words + w);
      for (uint32_t i = 0; i < count; i++) {
        uint32_t q = block.get_word(at + (first + i) * slice + w);
        if constexpr (K == kv_type::int8) {
          sums[i] = dot_four(k, q, sums[i]);
        } else {
          sums[i] = fused(from_bits(q), from_bits(k), sums[i]);
        }
      }
    }
  }
  /// Of query i with a key of this scale.
  template <class Block>
  LETHE_BODY static float score(Block& block, uint32_t i, score_sum<K> sum, float key_scale) {
    if constexpr (K != kv_type::int8) return sum;
    return float(sum) * key_scale * (greatest(block, i) / 127.0f);
  }
};

/// A slice of a tile's values into shared words [key][slice_words]; other keys are zeros.
template <kv_type K, uint32_t threads, class Block>
LETHE_BODY void fetch_slice(Block& block, const kv_place& place, tile_keys keys, uint32_t table,
                            uint32_t head_dim, uint32_t d0) {
  constexpr uint32_t step = threads / slice;
  uint32_t at = block.thread() % slice, first = block.thread() / slice, d = d0 + at;
  score_sum<K> value[attention_tile / step];
  for (uint32_t i = 0; i < attention_tile / step; i++) {
    const uint8_t* row = located(block, place, keys.near(first + i * step), table);
    value[i] = number_of<K>(row, d < head_dim ? d : 0);
  }
  for (uint32_t i = 0; i < attention_tile / step; i++) {
    uint32_t key = first + i * step;
    bool real = keys.has(key) && d < head_dim;
    block.put_word(key * slice_words + at, real ? word_of(value[i]) : 0);
  }
}

/// A warp's scores of one query and tile: each lane has keys l and l + 32.
struct lane_scores {
  float low, high;
};

template <class Block>
LETHE_BODY float greatest_score(Block& block, lane_scores s) {
  float greatest = greater_of(s.low, s.high);
  for (uint32_t m = warp_lanes / 2; m > 0; m /= 2) {
    greatest = greater_of(greatest, block.shuffle_xor(greatest, m));
  }
  return greatest;
}

/// The score that weights are relative to, where a tile's greatest is `score`.
LETHE_BODY float raised(float greatest, float score) {
  return score > greatest + raised_by ? score : greatest;
}

/// Of a query so far: its greatest score, and the sum of its weights relative to that.
struct softmax {
  float greatest, total;

  /// Brings it to a score that may be greater; returns what sums so far are to be multiplied with.
  LETHE_BODY float raise(float score) {
    float before = greatest;
    greatest = raised(before, score);
    if (greatest == before) return 1.0f;
    float factor = two_to(before - greatest);
    total = total * factor;
    return factor;
  }
};
LETHE_BODY softmax nothing_seen() { return {minus_infinity(), 0.0f}; }

/// What a warp's weights of a tile are multiplied with: the scales of their values.
template <kv_type K, class Block>
LETHE_BODY lane_scores value_scales(Block& block, const kv_place& values, tile_keys keys,
                                    uint32_t table, uint32_t head_dim) {
  if constexpr (K != kv_type::int8) return {1.0f, 1.0f};
  uint32_t lane = block.thread() % warp_lanes;
  lane_scores s{1.0f, 1.0f};
  if (keys.has(lane)) s.low = row_scale<K>(located(block, values, lane, table), head_dim);
  if (keys.has(lane + 32))
    s.high = row_scale<K>(located(block, values, lane + 32, table), head_dim);
  return s;
}

LETHE_BODY lane_scores weights_of(lane_scores s, float greatest) {
  return {two_to(s.low - greatest), two_to(s.high - greatest)};
}

/// In lanes 0 to 15: four vectors of 16 keys in turn, then (0+8), (1+9) ..., lanes 4, 2, 1 apart.
template <class Block>
LETHE_BODY float total_of(Block& block, lane_scores weight) {
  float second = block.shuffle_xor(weight.low, 16), fourth = block.shuffle_xor(weight.high, 16);
  float total = ((weight.low + second) + weight.high) + fourth;
  for (uint32_t m = 8; m > 0; m /= 2) total = total + block.shuffle_xor(total, m);
  return total;
}

/// A lane's weights of a tile as values are multiplied with them: floats, or with int8 values,
/// whose scales they take on, 32767ths of the tile's greatest.
struct lane_weights {
  uint32_t low, high;
  float scale;
};
template <kv_type K, class Block>
LETHE_BODY lane_weights words_of(Block& block, lane_scores weight, lane_scores scale) {
  if constexpr (K != kv_type::int8) return {bits_of(weight.low), bits_of(weight.high), 1.0f};
  weight = {weight.low * scale.low, weight.high * scale.high};
  // What is not seen may have a scale that is no number.
  lane_scores real{greater_of(weight.low, 0.0f), greater_of(weight.high, 0.0f)};
  float most = greatest_score(block, real);
  float inverse = 32767.0f / most;
  return {uint32_t(round_to_int(weight.low * inverse)) & 0x7fff,
          uint32_t(round_to_int(weight.high * inverse)) & 0x7fff, most / 32767.0f};
}

/// What a query sums of a tile, value by value, and how it joins the tiles before.
template <kv_type K>
struct tile_sum {
  float before;
  score_sum<K> of_tile = 0;

  LETHE_BODY void add(uint32_t weight, score_sum<K> value) {
    if constexpr (K == kv_type::int8) {
      of_tile += int32_t(weight) * value;
    } else {
      before = fused(from_bits(weight), value, before);
    }
  }
  LETHE_BODY float joined(float scale) const {
    if (K != kv_type::int8 || scale == 0.0f) return before;
    return fused(float(of_tile), scale, before);
  }
};

}  // namespace lethe::device
