#pragma once

#include "kernels/cuda/attend_spans.inl"

// One query token a run, split along the context: scores of all tiles at once, then the weighted
// values of each head and span. Their sums go key by key, as the CPU's do, so only heads, columns,
// spans and requests are summed beside each other.

namespace lethe::device {

template <kv_type K>
struct decode_scores {
  static constexpr uint32_t threads = 128, side_by_side = 4, queries = 8;
  static constexpr uint32_t each = queries * attention_tile / threads;  // queries of a thread
  using words = query_words<K, threads, queries, keys_words>;
  static constexpr uint32_t table_at = words::end;
  device_attention a;

  launch_shape shape() const {
    return {a.run_count * a.kv_heads, a.tiles_max, table_at + table_words};
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t run_index = block.x() / a.kv_heads, kv_head = block.x() % a.kv_heads;
    token_run run = a.runs[run_index];
    if (run.tokens == 0) return;
    uint32_t first = first_seen(run.position, a.window);
    uint32_t base = (first / attention_tile + block.y()) * attention_tile;
    if (base > run.position) return;
    tile_keys keys = keys_within(base, first, run.position);
    kv_place place(a.kv, a.kv.key_offset, kv_head, run.first_page);
    head_range heads = heads_of(a, kv_head);
    locate(block, threads, place, base, keys, table_at);
    block.barrier();
    for (uint32_t h = heads.begin; h < heads.end; h += queries) {
      score_sum<K> sums[each] = {};
      const float* q = a.q + run.row * a.q_stride;
      auto query = [&](uint32_t i) {
        if (h + i >= heads.end) return query_row{};
        return query_row{q + size_t{h + i} * a.kv.head_dim, a.kv.head_dim, score_scale(a)};
      };
      words::find_greatest(block, query);
      for (uint32_t d0 = 0; d0 < a.kv.head_dim; d0 += slice) {
        fetch_keys<K, threads>(block, place, keys, table_at, a.kv.head_dim, d0);
        words::fetch(block, d0, query);
        block.barrier();
        words::add(block, block.thread() % attention_tile, first_query(block), a.kv.head_dim - d0,
                   sums);
        block.barrier();
      }
      store(block, {run_index, h, heads.end}, place, keys, sums);
    }
  }

 private:
  template <class Block>
  LETHE_BODY static uint32_t first_query(Block& block) {
    return block.thread() / attention_tile * each;
  }
  struct stored_heads {
    uint32_t run, begin, end;
  };
  template <class Block>
  LETHE_BODY void store(Block& block, const stored_heads& of, const kv_place& place, tile_keys keys,
                        const score_sum<K> (&sums)[each]) const {
    uint32_t key = block.thread() % attention_tile;
    if (!keys.has(key)) return;
    float scale = 1.0f;
    if constexpr (K == kv_type::int8) {
      scale = row_scale<K>(located(block, place, key, table_at), a.kv.head_dim);
    }
    for (uint32_t i = 0; i < each; i++) {
      uint32_t query = first_query(block) + i;
      size_t head = of.begin + query;
      if (head >= of.end) continue;
      size_t tile = (size_t{of.run} * a.heads + head) * a.tiles_max + block.y();
      a.scratch[tile * attention_tile + key] = words::score(block, query, sums[i], scale);
    }
  }
};

/// A block for each query head, span and 128 columns of its output.
template <kv_type K>
struct decode_values {
  static constexpr uint32_t threads = 128, side_by_side = 4, warps = threads / warp_lanes;
  static constexpr uint32_t tiles = 8;  // whose weights are in shared words at once
  static constexpr uint32_t tiles_each = tiles / warps;
  static constexpr uint32_t maxima = tiles * attention_tile, totals = maxima + tiles;
  static constexpr uint32_t scales = totals + tiles, table_at = scales + tiles;
  device_attention a;
  float* spans;  // for join_spans

  launch_shape shape() const {
    return {a.run_count * a.heads, column_blocks() * attention_spans(a.tiles_max),
            table_at + tiles * table_words};
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t run_index = block.x() / a.heads, head = block.x() % a.heads;
    token_run run = a.runs[run_index];
    if (run.tokens == 0) return;
    uint32_t first = first_seen(run.position, a.window), of = block.y() / column_blocks();
    uint32_t first_tile = first / attention_tile * attention_tile;
    uint32_t base = greatest_of(first_tile, (first / span_keys + of) * span_keys);
    if (base > run.position) return;
    uint32_t last = least_of(run.position, base / span_keys * span_keys + span_keys - 1);
    kv_place place(a.kv, a.kv.value_offset, (a.first_head + head) / a.group, run.first_page);
    const float* scores = a.scratch + size_t{block.x()} * a.tiles_max * attention_tile;
    scores += base - first_tile;
    query sums{nothing_seen(), 0.0f};
    for (; base <= last; base += tiles * attention_tile, scores += maxima) {
      locate_all(block, place, base, first, last);
      weigh(block, place, scores, base, first, last, sums.seen.greatest);
      take(block, place, base, first, last, sums);
      block.barrier();
    }
    float* to = span_place{a, spans}.at(run_index, head, of);
    if (column(block) == 0) to[0] = sums.seen.greatest, to[1] = sums.seen.total;
    if (column(block) < a.kv.head_dim) to[2 + column(block)] = sums.sum;
  }

 private:
  struct query {
    softmax seen;
    float sum;
  };

  constexpr uint32_t column_blocks() const { return blocks_for(a.kv.head_dim, threads); }
  template <class Block>
  LETHE_BODY uint32_t column(Block& block) const {
    return block.y() % column_blocks() * threads + block.thread();
  }

  template <class Block>
  LETHE_BODY void locate_all(Block& block, const kv_place& place, uint32_t base, uint32_t first,
                             uint32_t last) const {
    constexpr uint32_t each = tiles * attention_tile / threads;
    uint64_t offset[each];
    for (uint32_t i = 0; i < each; i++) {
      uint32_t position = base + i * threads + block.thread();
      offset[i] = place.offset(least_of(greatest_of(position, first), last));
    }
    for (uint32_t i = 0; i < each; i++) {
      uint32_t at = table_at + 2 * (i * threads + block.thread());
      block.put_word(at, uint32_t(offset[i]));
      block.put_word(at + 1, uint32_t(offset[i] >> 32));
    }
  }

  /// The weights of some tiles, each relative to the greatest score up to it, their totals, scales
  /// and their own greatest scores, into shared words.
  template <class Block>
  LETHE_BODY void weigh(Block& block, const kv_place& place, const float* scores, uint32_t base,
                        uint32_t first, uint32_t last, float greatest) const {
    uint32_t lane = block.thread() % warp_lanes, warp = block.thread() / warp_lanes;
    lane_scores mine[tiles_each];
    for (uint32_t i = 0; i < tiles_each; i++) {
      uint32_t tile = warp * tiles_each + i;
      tile_keys keys = keys_within(base + tile * attention_tile, first, last);
      const float* of_tile = scores + tile * attention_tile;
      mine[i].low = keys.has(lane) ? of_tile[lane] : minus_infinity();
      mine[i].high = keys.has(lane + 32) ? of_tile[lane + 32] : minus_infinity();
      float now = greatest_score(block, mine[i]);
      if (lane == 0) block.put(maxima + tile, now);
    }
    block.barrier();
    for (uint32_t tile = 0; tile < warp * tiles_each; tile++) {
      greatest = raised(greatest, block.get(maxima + tile));
    }
    for (uint32_t i = 0; i < tiles_each; i++) {
      uint32_t tile = warp * tiles_each + i;
      greatest = raised(greatest, block.get(maxima + tile));
      lane_scores weight = weights_of(mine[i], greatest);
      tile_keys keys = keys_within(base + tile * attention_tile, first, last);
      lane_scores scale =
          value_scales<K>(block, place, keys, table_at + tile * table_words, a.kv.head_dim);
      lane_weights words = words_of<K>(block, weight, scale);
      block.put_word(tile * attention_tile + lane, words.low);
      block.put_word(tile * attention_tile + lane + 32, words.high);
      float total = total_of(block, weight);
      if (lane != 0) continue;
      block.put(totals + tile, total);
      block.put(scales + tile, words.scale);
    }
    block.barrier();
  }

  template <class Block>
  LETHE_BODY void take(Block& block, const kv_place& place, uint32_t base, uint32_t first,
                       uint32_t last, query& q) const {
    for (uint32_t tile = 0; tile < tiles; tile++, base += attention_tile) {
      if (base > last) return;
      q.sum = q.sum * q.seen.raise(block.get(maxima + tile));
      q.seen.total = q.seen.total + block.get(totals + tile);
      add_values(block, place, tile, keys_within(base, first, last), q.sum);
    }
  }

  template <class Block>
  LETHE_BODY void add_values(Block& block, const kv_place& place, uint32_t tile, tile_keys keys,
                             float& sum) const {
    uint32_t d = column(block);
    if (d >= a.kv.head_dim) return;
    tile_sum<K> so_far{sum};
    uint32_t key = keys.begin;
    for (; key + 16 <= keys.end; key += 16) add_rows<16>(block, place, tile, key, d, so_far);
    for (; key + 4 <= keys.end; key += 4) add_rows<4>(block, place, tile, key, d, so_far);
    for (; key < keys.end; key++) add_rows<1>(block, place, tile, key, d, so_far);
    sum = so_far.joined(block.get(scales + tile));
  }
  /// Without a branch between reading and adding: nvcc puts a load behind the branch that it can
  /// wait for, and then each key waits for memory.
  template <uint32_t count, class Block>
  LETHE_BODY static void add_rows(Block& block, const kv_place& place, uint32_t tile, uint32_t key,
                                  uint32_t d, tile_sum<K>& so_far) {
    score_sum<K> values[count];
    for (uint32_t i = 0; i < count; i++) {
      values[i] = number_of<K>(located(block, place, key + i, table_at + tile * table_words), d);
    }
    for (uint32_t i = 0; i < count; i++) {
      so_far.add(block.get_word(tile * attention_tile + key + i), values[i]);
    }
  }
};

}  // namespace lethe::device
