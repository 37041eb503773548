#pragma once

#include "kernels/cpu/attend_int8.inl"
#include "kernels/cpu/lanes_math.inl"

// A part's work, and how its scores become weights.

namespace lethe {
namespace {

/// A part and its scratch. A query is one head of one token; token t's queries are
/// t * heads .. t * heads + heads - 1.
struct attention_work {
  const attention_part& part;
  attention_layout at;
  uint32_t queries;
  span_of_k keys;  // that some query of the part sees, of its one span if it has one
  bool several_spans;
  float* in(size_t offset) const { return part.scratch + offset; }
};

/// The first key that the query at `position` sees.
inline uint32_t first_seen(const attention_part& part, uint32_t position) {
  return part.window == 0 || position < part.window ? 0 : position + 1 - part.window;
}

inline attention_work work_of(const attention_part& part) {
  span_of_k keys{first_seen(part, part.position), part.position + part.tokens};
  if (part.span.to) {
    keys.begin = greatest_of(keys.begin, part.span.index * span_keys);
    keys.end = least_of(keys.end, (part.span.index + 1) * span_keys);
  }
  return {part, layout_of(part.tokens, part.heads, part.kv.head_dim), part.tokens * part.heads,
          keys, keys.begin / span_keys != (keys.end - 1) / span_keys};
}

/// The keys of a tile that a token's queries see, counted from the tile's start; none if
/// end <= begin.
inline span_of_k seen_by(const attention_part& part, uint32_t token, const tile_span& t) {
  uint32_t position = part.position + token;
  uint32_t begin = greatest_of(first_seen(part, position), t.first);
  uint32_t end = least_of(position + 1, t.last);
  return begin < end ? span_of_k{begin - t.base, end - t.base} : span_of_k{0, 0};
}

/// Scores with int8 keys, until they are loaded.
inline int32_t* int_scores(const attention_work& w) {
  return reinterpret_cast<int32_t*>(w.in(w.at.scores));
}

/// Queries of int8 keys, [query][padded_dim], in place of the first floats.
inline int8_t* int8_queries(const attention_work& w) {
  return reinterpret_cast<int8_t*>(w.in(w.at.queries));
}

/// A query's weights of int8 values, two bytes each, in place of its scores.
inline int8_t* int8_weights(const attention_work& w) {
  return reinterpret_cast<int8_t*>(w.in(w.at.scores));
}

/// Weights of int8 values, and what their sums count.
inline weighted_values weighted_of(const attention_work& w) {
  return {int8_weights(w), w.in(w.at.weight_scales), w.in(w.at.sums), w.at.padded_dim};
}

/// The scores of one query and tile.
using tile_scores = lanes[attention_tile / 16];

template <class T>
[[gnu::always_inline]] inline void load_scores(const attention_work& w, uint32_t q,
                                               tile_scores& s) {
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
[[gnu::always_inline]] inline void mask_scores(tile_scores& s, span_of_k seen) {
  static constexpr float numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  lanes unseen = set1(-__builtin_inff());
  for (uint32_t v = 0; v < attention_tile / 16; v++) {
    lanes key = add(load(numbers), set1(float(v * 16)));
    s[v] = select(less(key, set1(float(seen.begin))), unseen, s[v]);
    s[v] = select(less(key, set1(float(seen.end))), s[v], unseen);
  }
}

/// Brings what a query has summed so far to a new greatest score, the greatest of these, as few
/// tiles have one that is greater by so much.
[[gnu::noinline]] void raise_to(const attention_work& w, uint32_t q, lanes scores) {
  float& before = w.in(w.at.maxima)[q];
  float now = max_of(scores);
  if (!(now > before + raised_by)) return;  // some were no numbers
  if (before == -__builtin_inff()) {
    before = now;  // of zeros
    return;
  }
  lanes less_by = two_to(sub(set1(before), set1(now)));
  float* sum = w.in(w.at.sums) + q * w.at.padded_dim;
  for (size_t i = 0; i < w.at.padded_dim; i += 16) store(sum + i, mul(load(sum + i), less_by));
  w.in(w.at.totals)[q] *= first_of(less_by);
  before = now;
}

/// The greatest score so far, as weights are made of it, once it is known whether this tile has a
/// greater one.
[[gnu::always_inline]] inline lanes greatest_so_far(const attention_work& w, uint32_t q,
                                                    const tile_scores& s) {
  lanes here = s[0];
  for_each_of<attention_tile / 16 - 1>([&](uint32_t v) { here = max(here, s[v + 1]); });
  const float& before = w.in(w.at.maxima)[q];
  if (bits_of(less(set1(before + raised_by), here)) != 0) [[unlikely]]
    raise_to(w, q, here);
  return set1(before);
}

/// Whether weights are rounded as they are.
template <class T>
constexpr bool rounds_weights = requires {
  &T::put_weights;
};

/// Queries that are weighed together.
constexpr uint32_t weighed_together = 4;

/// One query's scores become weights relative to the greatest score so far; those of int8 values
/// are multiplied with their scales, others rounded, once they are in the total. Always inline, as
/// all that it always does: scores and totals stay in registers.
template <class T>
[[gnu::always_inline]] inline void weigh(const attention_work& w, uint32_t q, span_of_k seen,
                                         lanes& total, lanes& most) {
  tile_scores s;
  load_scores<T>(w, q, s);
  if (seen.end - seen.begin < attention_tile) mask_scores(s, seen);
  lanes greatest = greatest_so_far(w, q, s);
  for (lanes& score : s) score = sub(score, greatest);
  two_to_each(s);
  float* to = w.in(w.at.scores) + size_t{q} * attention_tile;
  const float* scales = w.in(w.at.value_scales);
  for (uint32_t v = 0; v < attention_tile / 16; v++) {
    total = add(total, s[v]);
    if constexpr (scaled<T>) {
      s[v] = mul(s[v], load(scales + v * 16));
      most = max(s[v], most);  // not a NaN: what is not seen may have a scale that is none
    }
    if constexpr (!rounds_weights<T>) store(to + v * 16, s[v]);
  }
  if constexpr (rounds_weights<T>) T::put_weights(s, to);
}

/// The same in a function of its own, where registers are few.
template <class T>
[[gnu::noinline]] void weigh_apart(const attention_work& w, uint32_t q, span_of_k seen,
                                   lanes& total, lanes& most) {
  weigh<T>(w, q, seen, total, most);
}

/// Those of a query that sees none of a tile's keys, where all of a tile's are summed.
template <class T>
inline void weigh_nothing(const attention_work& w, uint32_t q) {
  if constexpr (rounds_weights<T>) {
    static constexpr tile_scores none = {};
    T::put_weights(none, w.in(w.at.scores) + size_t{q} * attention_tile);
  }
}

/// Those of int8 values as integers, where the query sees any.
inline void round_weights(const attention_work& w, uint32_t q, uint32_t count,
                          const float (&inverse)[weighed_together]) {
  for (uint32_t i = 0; i < count; i++) {
    if (w.in(w.at.weight_scales)[q + i] == 0.0f) continue;
    const float* from = w.in(w.at.scores) + size_t{q + i} * attention_tile;
    int_lanes rounded[attention_tile / 16];
    for (uint32_t v = 0; v < attention_tile / 16; v++) {
      rounded[v] = round_to_int(mul(load(from + v * 16), set1(inverse[i])));
    }
    store_weights(int8_weights(w) + (q + i) * weights_step, rounded);
  }
}

/// f() before each query. Weights are rounded when those of the next queries are made: what
/// they are multiplied with comes late.
template <class T, class F>
inline void weigh_all(const attention_work& w, const tile_span& t, F f) {
  float inverse[weighed_together];
  uint32_t token = 0, head = 0, count = 0;
  span_of_k seen = seen_by(w.part, 0, t);
  for (uint32_t q = 0; q < w.queries; q += weighed_together) {
    count = least_of(weighed_together, w.queries - q);
    lanes total[weighed_together], most[weighed_together];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < weighed_together; i++) {
      total[i] = most[i] = zero();
      if (i >= count) continue;
      f();
      if (seen.begin >= seen.end)
        weigh_nothing<T>(w, q + i);
      else if constexpr (whole_registers)
        weigh<T>(w, q + i, seen, total[i], most[i]);
      else
        weigh_apart<T>(w, q + i, seen, total[i], most[i]);
      if (++head < w.part.heads) continue;
      head = 0;
      seen = seen_by(w.part, ++token, t);
    }
    float totals[weighed_together], amax[weighed_together];
    if (scaled<T> && q > 0) round_weights(w, q - weighed_together, weighed_together, inverse);
    sums_of(total, totals);
    for (uint32_t i = 0; i < count; i++) w.in(w.at.totals)[q + i] += totals[i];
    if constexpr (!scaled<T>) continue;
    maxima_of(most, amax);
    for (uint32_t i = 0; i < count; i++) {
      inverse[i] = 32767.0f / amax[i];
      w.in(w.at.weight_scales)[q + i] = amax[i] / 32767.0f;
    }
  }
  if (scaled<T>) round_weights(w, w.queries - count, count, inverse);
}

}  // namespace
}  // namespace lethe
