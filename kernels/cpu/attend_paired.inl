#pragma once

#include "kernels/cpu/attend_rounded.inl"
#include "kernels/cpu/denormals.hpp"

// bf16 keys and values as pairs, which are multiplied with pairs of queries' numbers and weights.

namespace lethe {
namespace {

/// bf16 numbers whose weights are rounded to theirs, 32 keys' at a time.
struct rounded_numbers : bf16_numbers {
  [[gnu::always_inline]] static void put_weights(const tile_scores& s, float* to) {
    uint16_t* numbers = reinterpret_cast<uint16_t*>(to);
    for (uint32_t v = 0; v < attention_tile / 16; v += 2)
      round_to_bf16(s[v], s[v + 1], numbers + v * 16);
  }
};

/// Two numbers side by side, of 16 keys or of 16 columns of values, are a tile's row.
using paired_tile = uint16_t[bf16_together / 2][bf16_together];

/// A tile's keys and values as pairs, in place of what others copy.
struct paired_keys {
  paired_tile* keys;    // [unit of head_dim][16 keys]
  paired_tile* values;  // [unit of keys][16 numbers]
  explicit paired_keys(const attention_work& w)
      : keys(reinterpret_cast<paired_tile*>(w.in(w.at.keys))),
        values(reinterpret_cast<paired_tile*>(w.in(w.at.values))) {}
};

/// Queries as bf16, [query][2 * padded_dim], in place of the first floats.
inline uint16_t* rounded_queries(const attention_work& w) {
  return reinterpret_cast<uint16_t*>(w.in(w.at.queries));
}
/// The weights of a tile's keys, [query][2 * attention_tile], in place of their scores.
inline uint16_t* rounded_weights(const attention_work& w) {
  return reinterpret_cast<uint16_t*>(w.in(w.at.scores));
}
inline void round_queries(const attention_work& w) {
  for_query_pairs(w, [&](uint32_t q, uint32_t d, lanes first, lanes second) {
    round_to_bf16(first, second, rounded_queries(w) + q * 2 * w.at.padded_dim + d);
  });
}

/// 16 of the numbers that pairs are made of. Rows that aren't there are zeros.
inline constexpr uint16_t no_numbers[16] = {};

/// Makes pairs of a tile's keys and values that lie in vectors. Of keys that nobody sees, which may
/// be anything, values are zeros, as their weights are. Tiles that come are asked for meanwhile.
class pairs_of_tile {
 public:
  pairs_of_tile(const attention_work& w, const tile_span& t,
                const tile_places<rounded_numbers>& places, coming_evenly& coming)
      : kv_(w.part.kv), t_(t), places_(places), coming_(coming), to_(w), dim_(w.at.padded_dim) {}
  void make() {
    for (uint32_t v = 0; v < attention_tile / 16; v++) make_keys(v);
    for (uint32_t i = 0; i < attention_tile; i += 2) make_values(i);
  }
  /// Times that something is asked for.
  static uint32_t parts(uint32_t head_dim) {
    return units_of_dim(head_dim) * (bf16_together / 2) * (attention_tile / 16) +
           attention_tile / 2 * (head_dim / 16);
  }

 private:
  void make_keys(uint32_t v) {
    const uint16_t* key = places_.at[v].key;
    auto number = [&](uint32_t d) {
      return d < kv_.head_dim ? key + size_t{d} * kv_.page_tokens : no_numbers;
    };
    for (uint32_t u = 0; u < units_of_dim(kv_.head_dim); u++) {
      uint32_t d = u * bf16_together;
      for (auto& pair : to_.keys[u * (attention_tile / 16) + v]) {
        interleave_bf16(number(d), number(d + 1), pair);
        coming_.ask(1);
        d += 2;
      }
    }
  }
  void make_values(uint32_t i) {
    auto value = [&](uint32_t k) {
      bool exists = t_.first <= t_.base + k && t_.base + k < t_.last;
      return exists ? places_.at[k / 16].value + k % 16 * size_t{kv_.head_dim} : nullptr;
    };
    const uint16_t *first = value(i), *second = value(i + 1);
    paired_tile* to = to_.values + i / bf16_together * (dim_ / 16);
    for (size_t d = 0; d < dim_; d += 16, to++) {
      interleave_bf16(first ? first + d : no_numbers, second ? second + d : no_numbers,
                      (*to)[i % bf16_together / 2]);
      coming_.ask(1);
    }
  }

  const kv_view& kv_;
  const tile_span& t_;
  const tile_places<rounded_numbers>& places_;
  coming_evenly& coming_;
  paired_keys to_;
  size_t dim_;
};

/// Pairs of a tile that lies anyhow, number by number.
inline void make_pairs_one_by_one(const attention_work& w, const tile_span& t) {
  const kv_view& kv = w.part.kv;
  paired_keys to(w);
  uint32_t units = units_of_dim(kv.head_dim), panels = uint32_t(w.at.padded_dim / 16);
  __builtin_memset(to.keys, 0, units * (attention_tile / 16) * sizeof(paired_tile));
  __builtin_memset(to.values, 0, attention_tile / bf16_together * panels * sizeof(paired_tile));
  for (uint32_t i = t.first - t.base; i < t.last - t.base; i++) {
    kv_place<rounded_numbers> from = place_of<rounded_numbers>(kv, t.base + i);
    for (uint32_t d = 0; d < kv.head_dim; d++) {
      uint32_t k = d % bf16_together, u = i % bf16_together;
      paired_tile& keys = to.keys[d / bf16_together * (attention_tile / 16) + i / 16];
      keys[k / 2][i % 16 * 2 + k % 2] = from.key[d * kv.page_tokens];
      paired_tile& values = to.values[i / bf16_together * panels + d / 16];
      values[u / 2][d % 16 * 2 + u % 2] = from.value[d];
    }
  }
}

/// A part's tiles: score(t), then weights, then sum(t), with pairs of the tile's keys and values.
template <class Score, class Sum>
inline void walk_pairs(const attention_work& w, Score score, Sum sum) {
  const kv_view& kv = w.part.kv;
  bool vectors = lies_in_vectors(kv);
  tile_span t = first_tile(w.keys);
  tile_turns<rounded_numbers> turns(w, t);
  while (t.first < t.last) {
    tile_span next = tile_after(w.keys, t);
    coming_evenly& coming = turns.coming(next, pairs_of_tile::parts(kv.head_dim));
    vectors ? pairs_of_tile(w, t, turns.here(), coming).make() : make_pairs_one_by_one(w, t);
    score(t);
    weigh_all<rounded_numbers>(w, t, [] {});
    sum(t);
    end_tile(w, next);
    t = next;
    turns.turn();
  }
}

/// join_spans where denormals are zeros until what bf16 keys gave is divided.
void join_spans_of_pairs(kv_type type, const float* spans, uint32_t count, uint32_t head_dim,
                         float* out) {
  if (type != kv_type::bf16) return join_spans(type, spans, count, head_dim, out);
  float total;
  {
    denormals_are_zeros mode;
    total = sum_spans(spans, count, head_dim, out);
  }
  answer(out, total, head_dim, out);
}

}  // namespace
}  // namespace lethe
