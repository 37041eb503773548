#pragma once

#include "kernels/cuda/attend_tensor_parts.inl"

namespace lethe::device {

/// Sixteen queries of a run against one kv head, by tensor cores. One span a block, which a decode
/// is split into; or all of them. A query's bits depend on what it sees alone: a tile is always
/// taken whole, and what the query does not see of it weighs nothing.
template <kv_type K, bool split>
struct tensor_attend {
  static constexpr product_type as = product_type::bf16;
  static constexpr uint32_t threads = 128, side_by_side = K == kv_type::f32 ? 2 : 3;
  static constexpr uint32_t queries = 16, warps = threads / warp_lanes;
  static constexpr uint32_t own_queries = queries / warps;          // that a warp weighs
  static constexpr uint32_t own_keys = attention_tile / 8 / warps;  // eights that it scores
  static constexpr uint32_t unit = 32;                              // columns of the output
  static constexpr uint32_t own_units = tensor_head_max / unit / warps;
  static constexpr uint32_t depth = facts_of(as).depth;
  // Shared words: rows of scores and of weights (pairs of bf16) begin at different banks.
  static constexpr uint32_t score_pitch = attention_tile + 4, weight_pitch = attention_tile / 2 + 4;
  static constexpr uint32_t weights_at = queries * score_pitch;
  static constexpr uint32_t factors_at = weights_at + queries * weight_pitch;
  static constexpr uint32_t joins_at = factors_at + queries;  // [before, span][query]
  static constexpr uint32_t tables_at = joins_at + 2 * queries;
  static constexpr uint32_t queries_at = tables_at + 2 * table_words;
  device_attention a;

  launch_shape shape() const {
    uint32_t heads = a.run_count * a.kv_heads, words = queries_at + queries * query_pitch();
    if (split) return {heads * blocks_for(a.group, queries), attention_spans(a.tiles_max), words};
    return {heads, blocks_for(size_t{a.tokens_max} * a.group, queries), words};
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t parts = split ? blocks_for(a.group, queries) : 1;
    uint32_t from = (split ? block.x() % parts : block.y()) * queries;
    queries_of_run v(a, block.x() / parts, from, queries);
    if (v.count == 0) return;
    view seen{v, first_seen(v.position(0), a.window), v.position(v.count - 1), 0};
    uint32_t span = seen.first / span_keys, end = seen.last / span_keys + 1;
    if (split) {
      span += block.y();
      if (span >= end) return;
      end = span + 1;
    }
    fetch_queries(block, v);
    outputs all = {};
    softmax joined[own_queries];
    for (softmax& s : joined) s = nothing_seen();
    for (; span < end; span++) {
      outputs sums = {};
      softmax state[own_queries];
      for (softmax& s : state) s = nothing_seen();
      walk(block, seen, span, state, sums);
      split ? store(block, v, state, sums) : join_one(block, state, sums, joined, all);
    }
    if (!split) finish(block, v, joined, all);
  }

 private:
  struct view {
    const queries_of_run& v;
    uint32_t first, last;  // keys that one of the queries sees
    uint32_t table;        // 0, 1: where the next tile's rows are noted
  };
  /// A lane's part of the sums: with g = lane / 4, t = lane % 4 numbers 0 and 1 of sum i are query
  /// g's, columns 8t + i and 8t + 4 + i of the unit, numbers 2 and 3 those of query g + 8.
  struct outputs {
    product_sums<as> of[own_units][4];
  };
  struct lane_place {
    uint32_t warp, lane, g, t;
    template <class Block>
    LETHE_BODY explicit lane_place(Block& block)
        : warp(block.thread() / warp_lanes),
          lane(block.thread() % warp_lanes),
          g(lane / 4),
          t(lane % 4) {}
  };

  /// Query i of a warp's: one after the other, as a decode has few.
  LETHE_BODY static uint32_t own_query(uint32_t warp, uint32_t i) { return i * warps + warp; }
  constexpr uint32_t query_words() const { return (a.kv.head_dim + depth - 1) / depth * depth / 2; }
  constexpr uint32_t query_pitch() const { return query_words() + 4; }

  /// As bf16, not scaled: what is left of a score to be multiplied comes to it in fp32.
  template <class Block>
  LETHE_BODY void fetch_queries(Block& block, const queries_of_run& v) const {
    uint32_t words = query_words(), d = a.kv.head_dim;
    for (uint32_t i = block.thread(); i < queries * words; i += threads) {
      uint32_t q = i / words, at = i % words * 2;
      const float* row = a.q + (v.run.row + v.token(q)) * a.q_stride + size_t{v.head(q)} * d;
      float low = q < v.count && at < d ? row[at] : 0.0f;
      float high = q < v.count && at + 1 < d ? row[at + 1] : 0.0f;
      block.put_word(queries_at + q * query_pitch() + at / 2, bf16_pair(low, high));
    }
  }

  /// The tiles of a span that one of the queries sees some of.
  template <class Block>
  LETHE_BODY void walk(Block& block, view& seen, uint32_t span, softmax (&state)[own_queries],
                       outputs& sums) const {
    uint32_t base = greatest_of(seen.first / attention_tile * attention_tile, span * span_keys);
    uint32_t end = least_of(seen.last + 1, (span + 1) * span_keys);
    uint32_t head = seen.v.kv_head(a), pages = seen.v.run.first_page;
    kv_place key(a.kv, a.kv.key_offset, head, pages), value(a.kv, a.kv.value_offset, head, pages);
    note_rows(block, key, seen, base);
    block.barrier();
    for (; base < end; base += attention_tile) {
      tile t{key, value, base, keys_within(base, seen.first, seen.last),
             tables_at + seen.table * table_words};
      score(block, t);
      values first = fetch_values(block, t, block.thread() / warp_lanes);
      block.barrier();
      weigh(block, seen.v, t, state);
      seen.table ^= 1;
      if (base + attention_tile < end) note_rows(block, key, seen, base + attention_tile);
      block.barrier();
      take(block, t, first, sums);
    }
  }
  struct tile {
    const kv_place &key, &value;
    uint32_t base;
    tile_keys keys;
    uint32_t table;
  };
  template <class Block>
  LETHE_BODY void note_rows(Block& block, const kv_place& key, const view& seen,
                            uint32_t base) const {
    locate(block, threads, key, base, keys_within(base, seen.first, seen.last),
           tables_at + seen.table * table_words);
  }

  /// Of sixteen keys a warp, not scaled, into shared words [query][score_pitch].
  template <class Block>
  LETHE_BODY void score(Block& block, const tile& t) const {
    lane_place at(block);
    const uint8_t* rows[own_keys];
    for (uint32_t i = 0; i < own_keys; i++) {
      uint32_t key = (at.warp * own_keys + i) * 8 + at.g;
      rows[i] = located(block, t.key, t.keys.near(key), t.table);
    }
    product_sums<as> sums[own_keys] = {};
    uint32_t d = 0;
    for (; is_even() && d + 4 * depth <= a.kv.head_dim; d += 4 * depth) {
      four_halves k[4][own_keys];
      for (uint32_t s = 0; s < 4; s++) {
        for (uint32_t i = 0; i < own_keys; i++) {
          k[s][i] = halves_in<K>(rows[i], d + s * depth + 4 * at.t);
        }
      }
      for (uint32_t s = 0; s < 4; s++) add_scores(block, at, d + s * depth, k[s], sums);
    }
    for (; d < a.kv.head_dim; d += depth) {
      four_halves k[own_keys];
      for (uint32_t i = 0; i < own_keys; i++) {
        k[i] = halves_at<K>(rows[i], d + 4 * at.t, a.kv.head_dim);
      }
      add_scores(block, at, d, k, sums);
    }
    for (uint32_t i = 0; i < own_keys; i++) {
      for (uint32_t j = 0; j < 4; j++) {
        uint32_t q = at.g + j / 2 * 8, key = (at.warp * own_keys + i) * 8 + 2 * at.t + j % 2;
        block.put(q * score_pitch + key, sums[i].c[j]);
      }
    }
  }
  /// Whether whole steps of a row can be read without looking for its end.
  LETHE_BODY bool is_even() const { return a.kv.head_dim % 4 == 0; }
  template <class Block>
  LETHE_BODY void add_scores(Block& block, const lane_place& at, uint32_t d,
                             const four_halves (&k)[own_keys],
                             product_sums<as> (&sums)[own_keys]) const {
    product_rows<as> of = rows_at(block, queries_at + d / 2, query_pitch(), at);
    for (uint32_t i = 0; i < own_keys; i++) {
      sums[i] = block.template multiply<as>(of, {k[i].low, k[i].high}, sums[i]);
    }
  }
  /// Rows of queries for tensor cores, four numbers of each a lane.
  template <class Block>
  LETHE_BODY static product_rows<as> rows_at(Block& block, uint32_t first, uint32_t pitch,
                                             const lane_place& at) {
    uint32_t low = first + at.g * pitch + 2 * at.t, high = low + 8 * pitch;
    return {block.get_word(low), block.get_word(high), block.get_word(low + 1),
            block.get_word(high + 1)};
  }

  /// Scores become weights, times the values' scales and rounded; what each query's sums are to be
  /// brought to goes beside them. A lane has keys 2 * lane and the next.
  template <class Block>
  LETHE_BODY void weigh(Block& block, const queries_of_run& v, const tile& t,
                        softmax (&state)[own_queries]) const {
    lane_place at(block);
    lane_scores key_scale{1.0f, 1.0f}, value_scale{1.0f, 1.0f};
    if constexpr (K == kv_type::int8) {
      key_scale = scales_of(block, t.key, t, at.lane);
      value_scale = scales_of(block, t.value, t, at.lane);
    }
    for (uint32_t i = 0; i < own_queries; i++) {
      uint32_t q = own_query(at.warp, i);
      tile_keys mine = v.seen(a, q, t.base);
      lane_scores weight{0.0f, 0.0f};
      float factor = 1.0f;
      if (mine.begin < mine.end) {
        lane_scores s = scores_of(block, mine, q, at.lane, key_scale);
        factor = weigh_one(block, s, state[i], weight);
      }
      uint32_t both = bf16_pair(weight.low * value_scale.low, weight.high * value_scale.high);
      block.put_word(weights_at + q * weight_pitch + at.lane, both);
      if (at.lane == 0) block.put(factors_at + q, factor);
    }
  }
  template <class Block>
  LETHE_BODY lane_scores scales_of(Block& block, const kv_place& place, const tile& t,
                                   uint32_t lane) const {
    float s[2];
    for (uint32_t i = 0; i < 2; i++) {
      uint32_t key = 2 * lane + i;
      bool real = t.keys.has(key);
      s[i] = real ? row_scale<K>(located(block, place, key, t.table), a.kv.head_dim) : 1.0f;
    }
    return {s[0], s[1]};
  }
  template <class Block>
  LETHE_BODY lane_scores scores_of(Block& block, tile_keys mine, uint32_t q, uint32_t lane,
                                   const lane_scores& scale) const {
    uint32_t at = q * score_pitch + 2 * lane;
    float low = block.get(at) * scale.low * score_scale(a);
    float high = block.get(at + 1) * scale.high * score_scale(a);
    return {mine.has(2 * lane) ? low : minus_infinity(),
            mine.has(2 * lane + 1) ? high : minus_infinity()};
  }
  /// What sums so far are to be multiplied with.
  template <class Block>
  LETHE_BODY static float weigh_one(Block& block, const lane_scores& scores, softmax& s,
                                    lane_scores& weight) {
    float factor = s.raise(greatest_score(block, scores));
    weight = weights_of(scores, s.greatest);
    float total = weight.low + weight.high;
    for (uint32_t m = warp_lanes / 2; m > 0; m /= 2) total = total + block.shuffle_xor(total, m);
    s.total = s.total + total;
    return factor;
  }

  /// Of a lane, four columns of a unit, of all keys of a tile.
  struct values {
    four_halves of[attention_tile / depth][4];
  };
  /// Keys that are not there weigh nothing; in their place is one that is.
  template <class Block>
  LETHE_BODY values fetch_values(Block& block, const tile& t, uint32_t unit_of) const {
    lane_place at(block);
    uint32_t d = unit_of * unit + 4 * at.g;
    values v{};
    if (unit_of * unit >= a.kv.head_dim) return v;
    bool whole = is_even() && (unit_of + 1) * unit <= a.kv.head_dim;
    for (uint32_t k = 0; k < attention_tile; k += depth) {
      for (uint32_t j = 0; j < 4; j++) {
        uint32_t key = t.keys.near(k + 4 * at.t + j);
        const uint8_t* row = located(block, t.value, key, t.table);
        v.of[k / depth][j] = whole ? halves_in<K>(row, d) : halves_at<K>(row, d, a.kv.head_dim);
      }
    }
    return v;
  }

  /// The tile's values, all of its keys; `first`: of the warp's first unit.
  template <class Block>
  LETHE_BODY void take(Block& block, const tile& t, const values& first, outputs& sums) const {
    lane_place at(block);
    take_unit(block, at, at.warp, first, sums.of[0]);
    LETHE_UNROLL
    for (uint32_t u = 1; u < own_units; u++) {
      uint32_t of = at.warp + u * warps;
      if (of * unit < a.kv.head_dim)
        take_unit(block, at, of, fetch_values(block, t, of), sums.of[u]);
    }
  }
  template <class Block>
  LETHE_BODY void take_unit(Block& block, const lane_place& at, uint32_t of, const values& v,
                            product_sums<as> (&sums)[4]) const {
    if (of * unit >= a.kv.head_dim) return;
    float low = block.get(factors_at + at.g), high = block.get(factors_at + at.g + 8);
    for (product_sums<as>& s : sums) {
      // Not a product alone: a negative zero would show what was not seen.
      for (uint32_t j = 0; j < 4; j++) s.c[j] = fused(s.c[j], j < 2 ? low : high, 0.0f);
    }
    for (uint32_t k = 0; k < attention_tile; k += depth) {
      product_rows<as> weights = rows_at(block, weights_at + k / 2, weight_pitch, at);
      for (uint32_t i = 0; i < 4; i++) {
        sums[i] = block.template multiply<as>(weights, column_of(v.of[k / depth], i), sums[i]);
      }
    }
  }

  /// f(query, column, sum) for a lane's sums that are the output's.
  template <class F>
  LETHE_BODY void for_sums(const lane_place& at, uint32_t count, const outputs& sums, F f) const {
    LETHE_UNROLL
    for (uint32_t u = 0; u < own_units; u++) {
      LETHE_UNROLL
      for (uint32_t i = 0; i < 4; i++) {
        LETHE_UNROLL
        for (uint32_t j = 0; j < 4; j++) {
          uint32_t q = at.g + j / 2 * 8;
          uint32_t d = (at.warp + u * warps) * unit + 8 * at.t + j % 2 * 4 + i;
          if (q < count && d < a.kv.head_dim) f(q, d, sums.of[u][i].c[j]);
        }
      }
    }
  }

  /// A span of a decode, for join_spans.
  template <class Block>
  LETHE_BODY void store(Block& block, const queries_of_run& v, const softmax (&state)[own_queries],
                        const outputs& sums) const {
    lane_place at(block);
    uint32_t run = block.x() / blocks_for(a.group, queries) / a.kv_heads;
    span_place to{a, a.scratch};
    for_sums(at, v.count, sums, [&](uint32_t q, uint32_t d, float sum) {
      to.at(run, v.head(q), block.y())[2 + d] = sum;
    });
    for (uint32_t i = 0; i < own_queries; i++) {
      uint32_t q = own_query(at.warp, i);
      if (q >= v.count || at.lane != 0) continue;
      float* of = to.at(run, v.head(q), block.y());
      of[0] = state[i].greatest;
      of[1] = state[i].total;
    }
  }

  /// As join_spans does.
  template <class Block>
  LETHE_BODY void join_one(Block& block, const softmax (&state)[own_queries], const outputs& sums,
                           softmax (&joined)[own_queries], outputs& all) const {
    lane_place at(block);
    for (uint32_t i = 0; i < own_queries; i++) {
      join_factors f = join(joined[i], state[i]);
      if (at.lane != 0) continue;
      block.put(joins_at + own_query(at.warp, i), f.before);
      block.put(joins_at + queries + own_query(at.warp, i), f.span);
    }
    block.barrier();
    join_factors low{block.get(joins_at + at.g), block.get(joins_at + queries + at.g)};
    join_factors high{block.get(joins_at + at.g + 8), block.get(joins_at + queries + at.g + 8)};
    LETHE_UNROLL
    for (uint32_t u = 0; u < own_units; u++) {
      LETHE_UNROLL
      for (uint32_t i = 0; i < 4; i++) {
        LETHE_UNROLL
        for (uint32_t j = 0; j < 4; j++) {
          float& sum = all.of[u][i].c[j];
          sum = (j < 2 ? low : high).joined(sum, sums.of[u][i].c[j]);
        }
      }
    }
  }

  template <class Block>
  LETHE_BODY void finish(Block& block, const queries_of_run& v,
                         const softmax (&joined)[own_queries], const outputs& all) const {
    lane_place at(block);
    for (uint32_t i = 0; i < own_queries; i++) {
      if (at.lane == 0) block.put(factors_at + own_query(at.warp, i), joined[i].total);
    }
    block.barrier();
    float low = block.get(factors_at + at.g), high = block.get(factors_at + at.g + 8);
    for_sums(at, v.count, all, [&](uint32_t q, uint32_t d, float sum) {
      float* out = a.out + (v.run.out_row + v.token(q)) * a.out_stride;
      out[size_t{v.head(q)} * a.kv.head_dim + d] = answer(sum, q < 8 ? low : high);
    });
  }
};

}  // namespace lethe::device
