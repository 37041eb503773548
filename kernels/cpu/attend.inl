#pragma once

#include "kernels/cpu/attend_int8.inl"
#include "kernels/cpu/lanes_math.inl"

namespace lethe {
namespace {

/// A part and its scratch. A query is one head of one token; token t's queries are
/// t * heads .. t * heads + heads - 1.
struct attention_work {
  const attention_part& part;
  attention_layout at;
  uint32_t queries;
  float* in(size_t offset) const { return part.scratch + offset; }
};

/// The first key that the query at `position` sees.
inline uint32_t first_seen(const attention_part& part, uint32_t position) {
  return part.window == 0 || position < part.window ? 0 : position + 1 - part.window;
}

/// The keys of a tile that a token's queries see, counted from the tile's start; none if
/// end <= begin.
inline span_of_k seen_by(const attention_part& part, uint32_t token, const tile_span& t) {
  uint32_t position = part.position + token;
  uint32_t begin = greatest_of(first_seen(part, position), t.first);
  uint32_t end = least_of(position + 1, t.last);
  return begin < end ? span_of_k{begin - t.base, end - t.base} : span_of_k{0, 0};
}

/// Whether every query of the part sees every key of the tile, as in most tiles of a long context.
inline bool all_see(const attention_part& part, const tile_span& t) {
  return t.last <= part.position + 1 &&
         t.first >= first_seen(part, part.position + part.tokens - 1);
}

/// So many queries (of a token that is decoded, or a few) don't pay for a copy of keys and values.
constexpr uint32_t few_queries = 8;

/// Whether keys and values lie in whole vectors in pages.
inline bool lies_in_vectors(const kv_view& kv) {
  return has_whole_vectors(kv) && kv.head_dim % 16 == 0;
}

void begin_queries(const attention_work& w) {
  const attention_part& part = w.part;
  uint32_t head_dim = part.kv.head_dim;
  lanes scale = set1(part.scale);
  for (uint32_t q = 0; q < w.queries; q++) {
    uint32_t t = q / part.heads, h = q % part.heads;
    const float* from = part.q + t * part.q_stride + size_t{h} * head_dim;
    float *to = w.in(w.at.queries) + q * w.at.padded_dim,
          *sum = w.in(w.at.sums) + q * w.at.padded_dim;
    for_vectors(head_dim,
                [&](size_t i, auto get, auto put) { put(to + i, mul(get(from + i), scale)); });
    for (size_t i = 0; i < w.at.padded_dim; i += 16) store(sum + i, zero());
    w.in(w.at.maxima)[q] = -__builtin_inff();
    w.in(w.at.totals)[q] = 0.0f;
    if (part.kv.type != kv_type::int8) continue;
    int8_query rounded = round_query(to, head_dim);
    w.in(w.at.query_scales)[q] = rounded.scale;
    w.in(w.at.query_corrections)[q] = __builtin_bit_cast(float, rounded.correction);
  }
}

template <class Keys>
void score(const attention_work& w, const tile_span& t, const Keys& keys) {
  product all{w.in(w.at.queries), w.at.padded_dim, w.in(w.at.scores), attention_tile};
  for_panels(vectors_within(t), [&](uint32_t column, auto width) {
    for_blocks(w.queries, [&](uint32_t q, uint32_t count) {
      multiply_rows<width.count>(row_of(column_of(all, column), q), keys, count,
                                 {0, w.part.kv.head_dim}, true);
    });
  });
}

inline void score(const attention_work& w, const tile_span& t, const int8_keys& keys) {
  int8_product all{reinterpret_cast<const int8_t*>(w.in(w.at.queries)), w.at.padded_dim * 4,
                   w.in(w.at.query_corrections), w.in(w.at.scores)};
  score_int8(all, w.queries, keys, vectors_within(t), w.part.kv.head_dim);
}

/// Sums of int8 numbers become scores.
inline void scale_scores(const attention_work& w, uint32_t q, span_of_k vectors) {
  float* scores = w.in(w.at.scores) + size_t{q} * attention_tile;
  lanes query = set1(w.in(w.at.query_scales)[q]);
  for (uint32_t v = vectors.begin; v < vectors.end; v++) {
    lanes key = load(w.in(w.at.key_scales) + v * 16);
    store(scores + v * 16, mul(mul(load(scores + v * 16), key), query));
  }
}

/// Keys that the query does not see get a score of -infinity. Returns the greatest score.
inline float mask_scores(float* scores, span_of_k vectors, span_of_k seen) {
  static constexpr float numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  lanes greatest = set1(-__builtin_inff()), unseen = greatest;
  for (uint32_t v = vectors.begin; v < vectors.end; v++) {
    lanes s = load(scores + v * 16);
    if (seen.begin > v * 16 || seen.end < v * 16 + 16) {
      lanes key = add(load(numbers), set1(float(v * 16)));
      s = select(less(key, set1(float(seen.begin))), unseen, s);
      s = select(less(key, set1(float(seen.end))), s, unseen);
      store(scores + v * 16, s);
    }
    greatest = max(greatest, s);
  }
  return max_of(greatest);
}

/// Brings what a query has summed so far to a new greatest score.
inline void raise_to(const attention_work& w, uint32_t q, float now) {
  float& before = w.in(w.at.maxima)[q];
  if (!(now > before)) return;
  lanes less_by = exp_of_negative(sub(set1(before), set1(now)));
  float* sum = w.in(w.at.sums) + q * w.at.padded_dim;
  for (size_t i = 0; i < w.at.padded_dim; i += 16) store(sum + i, mul(load(sum + i), less_by));
  w.in(w.at.totals)[q] *= first_of(less_by);
  before = now;
}

/// One query's scores become weights relative to the greatest score so far; of int8 values times
/// their scales, once they are in the total.
template <class T>
inline void weigh(const attention_work& w, uint32_t q, span_of_k vectors) {
  float* scores = w.in(w.at.scores) + size_t{q} * attention_tile;
  lanes greatest = set1(w.in(w.at.maxima)[q]), total = zero();
  for (uint32_t v = vectors.begin; v < vectors.end; v++) {
    lanes weight = exp_of_negative(sub(load(scores + v * 16), greatest));
    total = add(total, weight);
    lanes scale = scaled<T> ? load(w.in(w.at.value_scales) + v * 16) : zero();
    store(scores + v * 16, times<T>(weight, scale));
  }
  w.in(w.at.totals)[q] += sum_of(total);
}

template <class T>
void weigh_all(const attention_work& w, const tile_span& t) {
  span_of_k vectors = vectors_within(t);
  for (uint32_t token = 0; token < w.part.tokens; token++) {
    span_of_k seen = seen_by(w.part, token, t);
    if (seen.begin == seen.end) continue;
    for (uint32_t q = token * w.part.heads; q < (token + 1) * w.part.heads; q++) {
      if (scaled<T>) scale_scores(w, q, vectors);
      raise_to(w, q, mask_scores(w.in(w.at.scores) + size_t{q} * attention_tile, vectors, seen));
      weigh<T>(w, q, vectors);
    }
  }
}

/// Adds the weighted values of queries [q, q + count): each query its keys from first to last, and
/// only those; together where all see them.
template <uint32_t vectors, class Values>
inline void sum_block(const attention_work& w, const tile_span& t, const product& all,
                      const Values& values, uint32_t q, uint32_t count) {
  span_of_k seen[block_rows], common{0, attention_tile};
  for (uint32_t i = 0; i < count; i++) {
    seen[i] = seen_by(w.part, (q + i) / w.part.heads, t);
    common = {greatest_of(common.begin, seen[i].begin), least_of(common.end, seen[i].end)};
  }
  if (common.begin >= common.end) common = {attention_tile, attention_tile};
  auto alone = [&](uint32_t i, uint32_t begin, uint32_t end) {
    if (begin < end) multiply_rows<vectors>(row_of(all, q + i), values, 1, {begin, end}, false);
  };
  for (uint32_t i = 0; i < count; i++) {
    alone(i, seen[i].begin, least_of(common.begin, seen[i].end));
  }
  if (common.begin == attention_tile) return;
  multiply_rows<vectors>(row_of(all, q), values, count, common, false);
  for (uint32_t i = 0; i < count; i++) alone(i, common.end, seen[i].end);
}

template <class Values>
void sum_values(const attention_work& w, const tile_span& t, const Values& values) {
  product all{w.in(w.at.scores), attention_tile, w.in(w.at.sums), w.at.padded_dim};
  bool whole = all_see(w.part, t);
  for_panels({0, uint32_t(w.at.padded_dim / 16)}, [&](uint32_t column, auto width) {
    for_blocks(w.queries, [&](uint32_t q, uint32_t count) {
      product panel = column_of(all, column);
      if (!whole) return sum_block<width.count>(w, t, panel, values, q, count);
      multiply_rows<width.count>(row_of(panel, q), values, count,
                                 {t.first - t.base, t.last - t.base}, false);
    });
  });
}

void end_queries(const attention_work& w) {
  const attention_part& part = w.part;
  for (uint32_t q = 0; q < w.queries; q++) {
    uint32_t t = q / part.heads, h = q % part.heads;
    float* to = part.out + t * part.out_stride + size_t{h} * part.kv.head_dim;
    const float* sum = w.in(w.at.sums) + q * w.at.padded_dim;
    lanes total = set1(w.in(w.at.totals)[q]);
    for_vectors(part.kv.head_dim,
                [&](size_t i, auto get, auto put) { put(to + i, div(get(sum + i), total)); });
  }
}

/// The keys of the tile at `base` that exist and that some query of the part sees; last <= first
/// after the last tile.
inline tile_span tile_at(const attention_part& part, uint32_t base) {
  return {base, greatest_of(base, first_seen(part, part.position)),
          least_of(base + attention_tile, part.position + part.tokens)};
}

inline tile_span first_tile(const attention_part& part) {
  return tile_at(part, first_seen(part, part.position) / attention_tile * attention_tile);
}
inline tile_span tile_after(const attention_part& part, const tile_span& t) {
  return tile_at(part, t.base + attention_tile);
}

/// A few queries take keys and values from where they lie. While a tile's keys are multiplied its
/// values are asked for, while those are summed the next tile's keys, and with int8 its values.
template <class T>
void attend_in_pages(const attention_work& w) {
  const kv_view& kv = w.part.kv;
  tile_places<T> places[2];
  size_t row_step = padded<T>(kv.head_dim);
  tile_span t = first_tile(w.part);
  locate<T>(kv, t, places[0]);
  for (uint32_t turn = 0; t.first < t.last; turn = 1 - turn) {
    const tile_places<T>& here = places[turn];
    tile_places<T>& after = places[1 - turn];
    tile_span next = tile_after(w.part, t);
    if (next.first < next.last) {
      locate<T>(kv, next, after);
    } else {
      after = here;
    }
    if constexpr (scaled<T>) {
      score(w, t, keys_in_pages(kv, here));
      load_scales(t, here, w.in(w.at.key_scales), w.in(w.at.value_scales));
      weigh_all<T>(w, t);
      sum_values(w, t, page_values<T, coming_int8>{here, row_step, all_of(kv, after)});
    } else {
      score(w, t, page_keys<T>{here, kv.page_tokens, values_of(kv, here)});
      weigh_all<T>(w, t);
      sum_values(w, t, page_values<T, coming<asks_of<T>>>{here, row_step, keys_of(kv, after)});
    }
    t = next;
  }
}

/// The tile's sums with int8 keys, for many queries.
inline void score_copied(const attention_work& w, const tile_span& t) {
  const kv_view& kv = w.part.kv;
  float *keys = w.in(w.at.key_scales), *values = w.in(w.at.value_scales);
  if (has_whole_vectors(kv)) {
    tile_places<int8_numbers> places;
    locate<int8_numbers>(kv, t, places);
    load_scales(t, places, keys, values);
    return score(w, t, keys_in_pages(kv, places));
  }
  load_scales_one_by_one(kv, t, keys, values);
  score(w, t, copy_keys(kv, t, reinterpret_cast<int8_t*>(w.in(w.at.keys))));
}

/// Many queries share a tile's keys and values as floats, int8 keys as they are.
template <class T>
void attend_copied(const attention_work& w) {
  float *keys = w.in(w.at.keys), *values = w.in(w.at.values);
  for (tile_span t = first_tile(w.part); t.first < t.last; t = tile_after(w.part, t)) {
    load_values<T>(w.part.kv, t, values, w.at.padded_dim);
    if constexpr (scaled<T>) {
      score_copied(w, t);
    } else {
      load_keys<T>(w.part.kv, t, keys);
      score(w, t, float_rows{keys, attention_tile});
    }
    weigh_all<T>(w, t);
    sum_values(w, t, float_rows{values, w.at.padded_dim});
  }
}

/// Softmax over tiles of keys in order, each query keeping its greatest score, the total of its
/// weights and its weighted sum of values. A query's arithmetic depends on its position alone.
void attend(const attention_part& part) {
  attention_work w{part, layout_of(part.tokens, part.heads, part.kv.head_dim),
                   part.tokens * part.heads};
  bool in_pages = w.queries <= few_queries && lies_in_vectors(part.kv);
  begin_queries(w);
  for_numbers(part.kv.type, [&]<class T>(T) {
    if (in_pages) return attend_in_pages<T>(w);
    attend_copied<T>(w);
  });
  end_queries(w);
}

}  // namespace
}  // namespace lethe
