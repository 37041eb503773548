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
/// A few queries of those are multiplied with them there.
inline bool in_pages(const attention_work& w) {
  return w.queries <= few_queries && lies_in_vectors(w.part.kv);
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
    for_blocks<Keys::together>(w.queries, [&](uint32_t q, uint32_t count) {
      multiply_rows<width.count>(row_of(column_of(all, column), q), keys, count,
                                 {0, w.part.kv.head_dim}, true);
    });
  });
}

/// Scores with int8 keys, until they are loaded.
inline int32_t* int_scores(const attention_work& w) {
  return reinterpret_cast<int32_t*>(w.in(w.at.scores));
}

inline void score(const attention_work& w, const tile_span& t, const int8_keys& keys,
                  coming_evenly& next) {
  int8_product all{reinterpret_cast<const int8_t*>(w.in(w.at.queries)), w.at.padded_dim * 4,
                   w.in(w.at.query_corrections), int_scores(w)};
  score_int8(all, w.queries, keys, vectors_within(t), w.part.kv.head_dim, next);
}

/// The scores of one query and tile.
using tile_scores = lanes[attention_tile / 16];

template <class T>
inline void load_scores(const attention_work& w, uint32_t q, tile_scores& s) {
  size_t from = size_t{q} * attention_tile;
  for (uint32_t v = 0; v < attention_tile / 16; v++) {
    if constexpr (scaled<T>) {
      s[v] = to_float(int_load(int_scores(w) + from + v * 16));
      s[v] = mul(s[v], load(w.in(w.at.key_scales) + v * 16));
      s[v] = mul(s[v], set1(w.in(w.at.query_scales)[q]));
    } else {
      s[v] = load(w.in(w.at.scores) + from + v * 16);
    }
  }
}

/// Keys that the query does not see get a score of -infinity.
inline void mask_scores(tile_scores& s, span_of_k seen) {
  static constexpr float numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  lanes unseen = set1(-__builtin_inff());
  for (uint32_t v = 0; v < attention_tile / 16; v++) {
    lanes key = add(load(numbers), set1(float(v * 16)));
    s[v] = select(less(key, set1(float(seen.begin))), unseen, s[v]);
    s[v] = select(less(key, set1(float(seen.end))), s[v], unseen);
  }
}

inline float greatest_of_scores(const tile_scores& s) {
  lanes greatest = s[0];
  for (uint32_t v = 1; v < attention_tile / 16; v++) greatest = max(greatest, s[v]);
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

/// int8 weights, times the scales of their values already, as integers.
inline void round_weights(const attention_work& w, uint32_t q, const tile_scores& weights) {
  lanes most = zero();
  for (uint32_t v = 0; v < attention_tile / 16; v++) most = max(weights[v], most);
  float amax = max_of(most);
  lanes inverse = set1(32767.0f / amax);
  int8_t* to = reinterpret_cast<int8_t*>(w.in(w.at.weights)) + size_t{q} * 2 * attention_tile;
  for (uint32_t v = 0; v < attention_tile / 16; v++) {
    store_weights(to, v * 16, round_to_int(mul(weights[v], inverse)));
  }
  w.in(w.at.weight_scales)[q] = amax / 32767.0f;
}

/// One query's scores become weights relative to the greatest score so far; those of int8 values
/// are multiplied with their scales once they are in the total.
template <class T>
inline void weigh(const attention_work& w, uint32_t q, span_of_k seen) {
  tile_scores s;
  load_scores<T>(w, q, s);
  if (seen.end - seen.begin < attention_tile) mask_scores(s, seen);
  raise_to(w, q, greatest_of_scores(s));
  lanes greatest = set1(w.in(w.at.maxima)[q]), total = zero();
  float* to = w.in(w.at.scores) + size_t{q} * attention_tile;
  for (uint32_t v = 0; v < attention_tile / 16; v++) {
    s[v] = exp_of_negative(sub(s[v], greatest));
    total = add(total, s[v]);
    if constexpr (scaled<T>) {
      s[v] = mul(s[v], load(w.in(w.at.value_scales) + v * 16));
    } else {
      store(to + v * 16, s[v]);
    }
  }
  w.in(w.at.totals)[q] += sum_of(total);
  if constexpr (scaled<T>) round_weights(w, q, s);
}

/// f() before each query.
template <class T, class F>
inline void weigh_all(const attention_work& w, const tile_span& t, F f) {
  for (uint32_t token = 0; token < w.part.tokens; token++) {
    span_of_k seen = seen_by(w.part, token, t);
    for (uint32_t q = token * w.part.heads; q < (token + 1) * w.part.heads; q++) {
      f();
      if (seen.begin < seen.end) {
        weigh<T>(w, q, seen);
      } else if (scaled<T>) {
        w.in(w.at.weight_scales)[q] = 0.0f;
      }
    }
  }
}

/// Adds the weighted values of queries [q, q + count): each query its keys from first to last, and
/// only those; together where all see them.
template <uint32_t vectors, class Values>
inline void sum_block(const attention_work& w, const tile_span& t, const product& all,
                      const Values& values, uint32_t q, uint32_t count) {
  span_of_k seen[Values::together], common{0, attention_tile};
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
    for_blocks<Values::together>(w.queries, [&](uint32_t q, uint32_t count) {
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

/// Where a tile lies, and the one after it, by turns; `whole`: if it lies in whole vectors.
template <class T>
class tile_turns {
 public:
  const bool whole;
  tile_turns(const kv_view& kv, const tile_span& first) : whole(has_whole_vectors(kv)), kv_(kv) {
    if (whole) locate<T>(kv, first, places_[0]);
  }
  const tile_places<T>& here() const { return places_[turn_]; }
  /// Where `next` lies; after the last tile, where that does.
  const tile_places<T>& after(const tile_span& next) {
    if (next.first >= next.last) return here();
    locate<T>(kv_, next, places_[1 - turn_]);
    return places_[1 - turn_];
  }
  /// `next`, to be asked for during so many parts of the work on this one.
  coming_evenly coming(const tile_span& next, uint32_t parts) {
    if (!whole || next.first >= next.last) return {};
    return {after(next), kv_, parts};
  }
  void turn() { turn_ = 1 - turn_; }

 private:
  const kv_view& kv_;
  tile_places<T> places_[2];
  uint32_t turn_ = 0;
};

/// A few queries take keys and values from where they lie. While a tile's keys are multiplied its
/// values are asked for, while those are summed the next tile's keys.
template <class T>
void attend_in_pages(const attention_work& w) {
  const kv_view& kv = w.part.kv;
  tile_span t = first_tile(w.part);
  tile_turns<T> turns(kv, t);
  while (t.first < t.last) {
    tile_span next = tile_after(w.part, t);
    const tile_places<T>&here = turns.here(), &after = turns.after(next);
    coming<T> values_here(here, &page_share::values, kv.head_dim);
    score(w, t, page_keys<T, coming<T>>{here, kv, values_here});
    weigh_all<T>(w, t, [] {});
    coming<T> keys_after(after, &page_share::keys, kv.head_dim);
    sum_values(w, t, page_values<T, coming<T>>{here, kv.head_dim, keys_after});
    t = next;
    turns.turn();
  }
}

/// Many queries share keys and values: floats where they lie, others as a copy that is made once a
/// tile. The next tile is asked for while scores become weights.
template <class T>
void attend_shared(const attention_work& w) {
  const kv_view& kv = w.part.kv;
  float *keys = w.in(w.at.keys), *values = w.in(w.at.values);
  tile_span t = first_tile(w.part);
  tile_turns<T> turns(kv, t);
  while (t.first < t.last) {
    tile_span next = tile_after(w.part, t);
    coming_evenly coming = turns.coming(next, w.queries);
    auto work_on = [&](const auto& tile_keys, const auto& tile_values) {
      score(w, t, tile_keys);
      weigh_all<T>(w, t, [&] { coming.ask(1); });
      sum_values(w, t, tile_values);
    };
    if (T::type == kv_type::f32 && lies_in_vectors(kv)) {
      work_on(page_keys<T, nothing_coming>{turns.here(), kv, {}},
              page_values<T, nothing_coming>{turns.here(), kv.head_dim, {}});
    } else {
      load_keys<T>(kv, t, keys);
      load_values<T>(kv, t, values, w.at.padded_dim);
      work_on(float_rows{keys, attention_tile}, float_rows{values, w.at.padded_dim});
    }
    t = next;
    turns.turn();
  }
}

/// int8 keys and values are taken from where they lie, or copied as they are.
void attend_int8(const attention_work& w) {
  const kv_view& kv = w.part.kv;
  float *key_scales = w.in(w.at.key_scales), *value_scales = w.in(w.at.value_scales);
  weighted_values sums{reinterpret_cast<const int8_t*>(w.in(w.at.weights)),
                       w.in(w.at.weight_scales), w.in(w.at.sums), w.at.padded_dim};
  tile_span t = first_tile(w.part);
  tile_turns<int8_numbers> turns(kv, t);
  while (t.first < t.last) {
    tile_span next = tile_after(w.part, t);
    coming_evenly coming = turns.coming(next, parts_of_tile(w.queries, kv.head_dim));
    if (turns.whole) {
      load_scales(t, turns.here(), key_scales, value_scales);
      score(w, t, keys_in_pages(kv, turns.here()), coming);
    } else {
      load_scales_one_by_one(kv, t, key_scales, value_scales);
      score(w, t, copy_keys(kv, t, reinterpret_cast<int8_t*>(w.in(w.at.keys))), coming);
    }
    weigh_all<int8_numbers>(w, t, [&] { coming.ask(parts_of_weighing); });
    int8_values values =
        lies_in_vectors(kv)
            ? values_in_pages(turns.here())
            : copy_values(kv, t, reinterpret_cast<int8_t*>(w.in(w.at.values)), w.at.padded_dim);
    add_values(sums, w.queries, values, vectors_within(t), coming);
    t = next;
    turns.turn();
  }
}

template <class T>
void attend_floats(const attention_work& w) {
  in_pages(w) ? attend_in_pages<T>(w) : attend_shared<T>(w);
}

/// Softmax over tiles of keys in order, each query keeping its greatest score, the total of its
/// weights and its weighted sum of values. A query's arithmetic depends on its position alone.
template <auto int8_way = attend_int8>
void attend(const attention_part& part) {
  attention_work w{part, layout_of(part.tokens, part.heads, part.kv.head_dim),
                   part.tokens * part.heads};
  begin_queries(w);
  switch (part.kv.type) {
    case kv_type::f32:
      attend_floats<f32_numbers>(w);
      break;
    case kv_type::bf16:
      attend_floats<bf16_numbers>(w);
      break;
    case kv_type::int8:
      int8_way(w);
      break;
  }
  end_queries(w);
}

}  // namespace
}  // namespace lethe
