#pragma once

#include "kernels/cuda/attend_spans.inl"

namespace lethe::device {

/// Runs of several tokens: a block takes sixteen queries (a query is one head of one token, tokens
/// outermost) of a run against one kv head through all tiles that one of them sees.
template <kv_type K>
struct prefill {
  static constexpr uint32_t threads = 256, side_by_side = 2;
  static constexpr uint32_t queries = 16, warps = threads / warp_lanes;
  static constexpr uint32_t score_queries = queries * attention_tile / threads;  // of a thread
  static constexpr uint32_t own_queries = queries / warps;                       // of a warp
  // Shared words.
  using words = query_words<K, threads, queries, keys_words>;
  static constexpr uint32_t scores_at = words::end;
  static constexpr uint32_t factors_at = scores_at + queries * attention_tile;
  static constexpr uint32_t totals_at = factors_at + queries, scales_at = totals_at + queries;
  static constexpr uint32_t table_at = scales_at + queries;
  static constexpr uint32_t joins_at = table_at + table_words;  // [before, span][query]
  static constexpr uint32_t sums_at = joins_at + 2 * queries;   // of the span, then of all joined
  device_attention a;

  launch_shape shape() const {
    return {a.run_count * a.kv_heads, blocks_for(size_t{a.tokens_max} * a.group, queries),
            sums_at + 2 * queries * a.kv.head_dim};
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    queries_of_run v(a, block.x(), block.y() * queries, queries);
    if (v.count == 0) return;
    clear(block);
    words::find_greatest(block, [&](uint32_t i) { return query(v, i); });
    uint32_t first = first_seen(v.position(0), a.window), last = v.position(v.count - 1);
    softmax state[own_queries], joined[own_queries];
    for (uint32_t i = 0; i < own_queries; i++) state[i] = joined[i] = nothing_seen();
    for (uint32_t base = first / attention_tile * attention_tile; base <= last;
         base += attention_tile) {
      tile_keys keys = keys_within(base, first, last);
      score(block, v, base, keys);
      weigh(block, v, base, keys, state);
      sum(block, v, base, keys);
      if (base + attention_tile > last || (base + attention_tile) % span_keys == 0)
        join_span(block, state, joined);
    }
    finish(block, v, joined);
  }

 private:
  /// Each thread clears what it will sum.
  template <class Block>
  LETHE_BODY void clear(Block& block) const {
    for_sums(block, 0, a.kv.head_dim, [&](uint32_t, uint32_t, uint32_t at) {
      block.put(at, 0.0f);
      block.put(joined_at(at), 0.0f);
    });
  }
  LETHE_BODY uint32_t joined_at(uint32_t sum) const { return sum + queries * a.kv.head_dim; }
  /// f(query, column, shared word) for the thread's sums in columns [begin, end).
  template <class Block, class F>
  LETHE_BODY void for_sums(Block& block, uint32_t begin, uint32_t end, F f) const {
    uint32_t warp = block.thread() / warp_lanes;
    for (uint32_t d = begin + block.thread() % warp_lanes; d < end; d += slice) {
      for (uint32_t q = warp * own_queries; q < (warp + 1) * own_queries; q++) {
        f(q, d, sums_at + q * a.kv.head_dim + d);
      }
    }
  }

  template <class Block>
  LETHE_BODY void score(Block& block, const queries_of_run& v, uint32_t base,
                        tile_keys keys) const {
    kv_place place(a.kv, a.kv.key_offset, v.kv_head(a), v.run.first_page);
    uint32_t key = block.thread() % attention_tile;
    uint32_t q0 = block.thread() / attention_tile * score_queries;
    score_sum<K> sums[score_queries] = {};
    locate(block, threads, place, base, keys, table_at);
    block.barrier();
    for (uint32_t d0 = 0; d0 < a.kv.head_dim; d0 += slice) {
      fetch_keys<K, threads>(block, place, keys, table_at, a.kv.head_dim, d0);
      words::fetch(block, d0, [&](uint32_t i) { return query(v, i); });
      block.barrier();
      words::add(block, key, q0, a.kv.head_dim - d0, sums);
      block.barrier();
    }
    float scale = 1.0f;
    if (K == kv_type::int8 && keys.has(key)) {
      scale = row_scale<K>(located(block, place, key, table_at), a.kv.head_dim);
    }
    for (uint32_t i = 0; i < score_queries; i++) {
      bool sees = v.seen(a, q0 + i, base).has(key);
      float score = sees ? words::score(block, q0 + i, sums[i], scale) : minus_infinity();
      block.put(scores_at + (q0 + i) * attention_tile + key, score);
    }
    block.barrier();
  }
  LETHE_BODY query_row query(const queries_of_run& v, uint32_t q) const {
    if (q >= v.count) return {};
    const float* row = a.q + (v.run.row + v.token(q)) * a.q_stride;
    return {row + size_t{v.head(q)} * a.kv.head_dim, a.kv.head_dim, score_scale(a)};
  }

  /// Scores become weights; what each query's sums are to be brought to goes beside them, and what
  /// the tile's are to be scaled by.
  template <class Block>
  LETHE_BODY void weigh(Block& block, const queries_of_run& v, uint32_t base, tile_keys tile,
                        softmax (&state)[own_queries]) const {
    kv_place values(a.kv, a.kv.value_offset, v.kv_head(a), v.run.first_page);
    lane_scores scale = value_scales<K>(block, values, tile, table_at, a.kv.head_dim);
    uint32_t lane = block.thread() % warp_lanes, warp = block.thread() / warp_lanes;
    for (uint32_t i = 0; i < own_queries; i++) {
      uint32_t q = warp * own_queries + i, at = scores_at + q * attention_tile + lane;
      tile_keys keys = v.seen(a, q, base);
      if (keys.begin == keys.end) continue;
      lane_scores mine{block.get(at), block.get(at + 32)};
      softmax& s = state[i];
      float factor = s.raise(greatest_score(block, mine));
      lane_scores weight = weights_of(mine, s.greatest);
      s.total = s.total + total_of(block, weight);
      lane_weights words = words_of<K>(block, weight, scale);
      block.put_word(at, words.low);
      block.put_word(at + 32, words.high);
      if (lane != 0) continue;
      block.put(factors_at + q, factor);
      block.put(scales_at + q, words.scale);
    }
    block.barrier();
  }

  /// Each query takes its keys' values from first to last, and only those.
  template <class Block>
  LETHE_BODY void sum(Block& block, const queries_of_run& v, uint32_t base, tile_keys keys) const {
    kv_place place(a.kv, a.kv.value_offset, v.kv_head(a), v.run.first_page);
    for (uint32_t d0 = 0; d0 < a.kv.head_dim; d0 += slice) {
      fetch_slice<K, threads>(block, place, keys, table_at, a.kv.head_dim, d0);
      block.barrier();
      for_sums(block, d0, least_of(d0 + slice, a.kv.head_dim),
               [&](uint32_t q, uint32_t d, uint32_t at) {
                 tile_keys mine = v.seen(a, q, base);
                 if (mine.begin == mine.end) return;
                 tile_sum<K> sum{block.get(at) * block.get(factors_at + q)};
                 for (uint32_t key = mine.begin; key < mine.end; key++) {
                   sum.add(block.get_word(scores_at + q * attention_tile + key),
                           number_in<K>(block.get_word(key * slice_words + d - d0)));
                 }
                 block.put(at, sum.joined(block.get(scales_at + q)));
               });
      block.barrier();
    }
  }

  /// As join_spans does; the next span begins from nothing.
  template <class Block>
  LETHE_BODY void join_span(Block& block, softmax (&state)[own_queries],
                            softmax (&joined)[own_queries]) const {
    uint32_t warp = block.thread() / warp_lanes;
    for (uint32_t i = 0; i < own_queries; i++) {
      join_factors f = join(joined[i], state[i]);
      state[i] = nothing_seen();
      if (block.thread() % warp_lanes != 0) continue;
      block.put(joins_at + warp * own_queries + i, f.before);
      block.put(joins_at + queries + warp * own_queries + i, f.span);
    }
    block.barrier();
    for_sums(block, 0, a.kv.head_dim, [&](uint32_t q, uint32_t, uint32_t at) {
      join_factors f{block.get(joins_at + q), block.get(joins_at + queries + q)};
      block.put(joined_at(at), f.joined(block.get(joined_at(at)), block.get(at)));
      block.put(at, 0.0f);
    });
    block.barrier();
  }

  template <class Block>
  LETHE_BODY void finish(Block& block, const queries_of_run& v,
                         const softmax (&joined)[own_queries]) const {
    uint32_t warp = block.thread() / warp_lanes;
    for (uint32_t i = 0; block.thread() % warp_lanes == 0 && i < own_queries; i++) {
      block.put(totals_at + warp * own_queries + i, joined[i].total);
    }
    block.barrier();
    for_sums(block, 0, a.kv.head_dim, [&](uint32_t q, uint32_t d, uint32_t at) {
      if (q >= v.count) return;
      float* out = a.out + (v.run.out_row + v.token(q)) * a.out_stride;
      out[size_t{v.head(q)} * a.kv.head_dim + d] =
          answer(block.get(joined_at(at)), block.get(totals_at + q));
    });
  }
};

}  // namespace lethe::device
