#pragma once

#include "kernels/cpu/attend_spans.inl"

namespace lethe {
namespace {

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
  lanes scale = set1(part.scale * log2_e);
  for (uint32_t q = 0; q < w.queries; q++) {
    uint32_t t = q / part.heads, h = q % part.heads;
    const float* from = part.q + t * part.q_stride + size_t{h} * head_dim;
    float* to = w.in(w.at.queries) + q * w.at.padded_dim;
    for_vectors(head_dim,
                [&](size_t i, auto get, auto put) { put(to + i, mul(get(from + i), scale)); });
    see_nothing(query_sums(w, q), w.at.padded_dim);
    if (w.several_spans) see_nothing(joined_sums(w, q), w.at.padded_dim);
    if (part.kv.type != kv_type::int8) continue;
    int8_query rounded = round_query(to, head_dim, int8_queries(w) + q * w.at.padded_dim);
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

inline void score(const attention_work& w, const tile_span& t, const int8_keys& keys,
                  coming_evenly& next) {
  int8_product all{int8_queries(w), w.at.padded_dim, w.in(w.at.query_corrections), int_scores(w)};
  score_int8(all, w.queries, keys, vectors_within(t), w.part.kv.head_dim, next);
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

/// Whether every query of the part sees every key of the tile, as in most tiles of a long context.
inline bool all_see(const attention_part& part, const tile_span& t) {
  return t.last <= part.position + 1 &&
         t.first >= first_seen(part, part.position + part.tokens - 1);
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
    summed all = w.several_spans ? joined_sums(w, q) : query_sums(w, q);
    float* out = part.out + t * part.out_stride + size_t{h} * part.kv.head_dim;
    part.span.to ? leave_span(all, part.kv.head_dim, part.span.to + q * part.span.stride)
                 : answer(all.sums, all.total, part.kv.head_dim, out);
  }
}

/// The keys of the tile at `base` that exist and that some query of the part sees; last <= first
/// after the last tile.
inline tile_span tile_at(span_of_k keys, uint32_t base) {
  return {base, greatest_of(base, keys.begin), least_of(base + attention_tile, keys.end)};
}

inline tile_span first_tile(span_of_k keys) {
  return tile_at(keys, keys.begin / attention_tile * attention_tile);
}
inline tile_span tile_after(span_of_k keys, const tile_span& t) {
  return tile_at(keys, t.base + attention_tile);
}

/// Where a tile lies, and those after it, by turns; `whole`: if it lies in whole vectors.
template <class T>
class tile_turns {
 public:
  const bool whole;
  tile_turns(const attention_work& w, const tile_span& first)
      : whole(has_whole_vectors(w.part.kv)), kv_(w.part.kv), keys_(w.keys) {
    if (whole) locate<T>(kv_, first, places_[0]);
  }
  const tile_places<T>& here() const { return places_[turn_ % count]; }
  /// Where `next` lies; after the last tile, where that does.
  const tile_places<T>& after(const tile_span& next) { return find(next, 1) ? place(1) : here(); }
  /// Two tiles to be asked for during this tile, so many parts of work: during the first one those
  /// after it, then two by two those after `next`, for two tiles' time.
  coming_evenly& coming(const tile_span& next, uint32_t parts) {
    bool first = turn_ == 0, second_of_two = !first && turn_ % 2 == 0;
    if (!whole || second_of_two) return coming_;
    uint32_t ahead = first ? 1 : 2;
    tile_span one = first ? next : tile_after(keys_, next), other = tile_after(keys_, one);
    coming_ = {};
    if (!find(one, ahead)) return coming_;
    bool both = find(other, ahead + 1);
    return coming_ = {place(ahead), place(both ? ahead + 1 : ahead), kv_, ahead * parts};
  }
  void turn() { turn_++; }

 private:
  static constexpr uint32_t count = 4;
  tile_places<T>& place(uint32_t ahead) { return places_[(turn_ + ahead) % count]; }
  /// Whether there is such a tile.
  bool find(const tile_span& tile, uint32_t ahead) {
    if (tile.first >= tile.last) return false;
    locate<T>(kv_, tile, place(ahead));
    return true;
  }
  const kv_view& kv_;
  const span_of_k keys_;
  tile_places<T> places_[count];
  coming_evenly coming_;
  uint32_t turn_ = 0;
};

/// What a few queries ask for while they take a tile: while its keys are multiplied its values,
/// while those are summed the next tile's keys; or, by halves, every other share of the next tile's
/// keys and values each time.
enum class asking { in_turn, by_halves };

/// By halves where a tile's keys lie in fewer than four pieces of memory, as a processor that reads
/// ahead follows one stream of lines in each 4 KiB, and where there are so many that the first
/// tile, of which nothing is asked for then, hardly counts.
inline bool pays_by_halves(const attention_work& w) {
  return w.part.kv.page_tokens > 16 && w.keys.end - w.keys.begin > 32 * attention_tile;
}

/// The tiles of a few queries, whose keys and values are taken from where they lie.
template <class T, asking way = asking::in_turn, class Score, class Weigh, class Sum>
inline void walk_pages(const attention_work& w, Score score, Weigh weigh, Sum sum) {
  const kv_view& kv = w.part.kv;
  bool halves = way == asking::by_halves && pays_by_halves(w);
  tile_span t = first_tile(w.keys);
  tile_turns<T> turns(w, t);
  while (t.first < t.last) {
    tile_span next = tile_after(w.keys, t);
    const tile_places<T>&here = turns.here(), &after = turns.after(next);
    coming<T> first = halves ? coming<T>(after, kv.head_dim, 0)
                             : coming<T>(here, &page_share::values, kv.head_dim);
    score(t, page_keys<T, coming<T>>{here, kv, first});
    weigh(t);
    coming<T> second = halves ? coming<T>(after, kv.head_dim, 1)
                              : coming<T>(after, &page_share::keys, kv.head_dim);
    sum(t, page_values<T, coming<T>>{here, kv.head_dim, second});
    end_tile(w, next);
    t = next;
    turns.turn();
  }
}

template <class T, asking way>
void attend_in_pages(const attention_work& w) {
  walk_pages<T, way>(
      w, [&](const tile_span& t, const auto& keys) { score(w, t, keys); },
      [&](const tile_span& t) { weigh_all<T>(w, t, [] {}); },
      [&](const tile_span& t, const auto& values) { sum_values(w, t, values); });
}

/// Many queries share keys and values: floats where they lie, others as a copy that is made once a
/// tile. The tiles that come are asked for while scores become weights.
template <class T>
void attend_shared(const attention_work& w) {
  const kv_view& kv = w.part.kv;
  float *keys = w.in(w.at.keys), *values = w.in(w.at.values);
  tile_span t = first_tile(w.keys);
  tile_turns<T> turns(w, t);
  while (t.first < t.last) {
    tile_span next = tile_after(w.keys, t);
    coming_evenly& coming = turns.coming(next, w.queries);
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
    end_tile(w, next);
    t = next;
    turns.turn();
  }
}

/// int8 keys and values are taken from where they lie, or copied as they are.
void attend_int8(const attention_work& w) {
  const kv_view& kv = w.part.kv;
  float *key_scales = w.in(w.at.key_scales), *value_scales = w.in(w.at.value_scales);
  int8_t *key_copy = reinterpret_cast<int8_t*>(w.in(w.at.keys)),
         *value_copy = reinterpret_cast<int8_t*>(w.in(w.at.values));
  tile_span t = first_tile(w.keys);
  tile_turns<int8_numbers> turns(w, t);
  while (t.first < t.last) {
    tile_span next = tile_after(w.keys, t);
    coming_evenly& coming = turns.coming(next, parts_of_tile(w.queries, kv.head_dim));
    turns.whole ? load_scales(t, turns.here(), key_scales, value_scales)
                : load_scales_one_by_one(kv, t, key_scales, value_scales);
    int8_keys keys = turns.whole ? keys_in_pages(kv, turns.here()) : copy_keys(kv, t, key_copy);
    int8_values values = lies_in_vectors(kv) ? values_in_pages(turns.here())
                                             : copy_values(kv, t, value_copy, w.at.padded_dim);
    score(w, t, keys, coming);
    weigh_all<int8_numbers>(w, t, [&] { coming.ask(parts_of_weighing); });
    add_values(weighted_of(w), w.queries, values, vectors_within(t), coming);
    end_tile(w, next);
    t = next;
    turns.turn();
  }
}

template <class T, asking way = asking::in_turn>
void attend_floats(const attention_work& w) {
  in_pages(w) ? attend_in_pages<T, way>(w) : attend_shared<T>(w);
}

/// Softmax over tiles of keys in order, each query keeping its greatest score, the total of its
/// weights and its weighted sum of values, span by span. A query's arithmetic depends on its
/// position alone.
template <auto int8_way = attend_int8, auto bf16_way = attend_floats<bf16_numbers>>
void attend(const attention_part& part) {
  attention_work w = work_of(part);
  begin_queries(w);
  switch (part.kv.type) {
    case kv_type::f32:
      attend_floats<f32_numbers>(w);
      break;
    case kv_type::bf16:
      bf16_way(w);
      break;
    case kv_type::int8:
      int8_way(w);
      break;
  }
  end_queries(w);
}

}  // namespace
}  // namespace lethe
