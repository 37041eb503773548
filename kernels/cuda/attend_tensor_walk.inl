#pragma once

#include "kernels/cuda/attend_tensor_parts.inl"

// Attention of prompts by tensor cores: a block takes 64 queries of a run through the keys of one
// kv head, tile by tile, which lie in shared words for all of them. A warp has sixteen queries,
// whose scores and weights don't leave its registers: which key of sixteen is which column of a
// product is chosen so that scores are weights' factors where they are. Bits are tensor_attend's.

namespace lethe::device {

/// Heads of up to 32 * units columns.
template <kv_type K, uint32_t units>
struct tensor_walk {
  static constexpr product_type as = product_type::bf16;
  static constexpr uint32_t threads = 128, side_by_side = units > 2 || K == kv_type::int8 ? 2 : 3;
  static constexpr uint32_t own = 16, queries = threads / warp_lanes * own;
  static constexpr uint32_t depth = facts_of(as).depth, eights = attention_tile / 8;
  device_attention a;

  launch_shape shape() const {
    return {a.run_count * a.kv_heads, blocks(), queries_at + queries * query_pitch()};
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    // The longest first.
    queries_of_run v(a, block.x(), (blocks() - 1 - block.y()) * queries, queries);
    if (v.count == 0) return;
    const lane_place at(block);
    const keys_of_run keys(a, v);
    uint32_t base = keys.first / attention_tile * attention_tile;
    fetch_queries(block, v);
    warp_queries mine(*this, block, v, at);
    for (;;) {
      const uint32_t end = least_of(keys.last + 1, (base / span_keys + 1) * span_keys);
      note(block, keys, base, end);
      block.barrier();
      walk(block, at, keys, base, end, mine);
      mine.join_span(block);
      base = end;
      if (base > keys.last) return mine.finish(block, at, *this, v);
      block.barrier();
    }
  }

 private:
  // Shared words: sums of spans before [sum][thread]; keys and values of a tile [key][column, two a
  // word], whose fours are turned so that lanes that read together meet in no bank; where a span's
  // rows are, and their scales; queries [query][column, two a word].
  static constexpr uint32_t own_sums = units * 16, row_words = units * 16;
  static constexpr uint32_t keys_at = own_sums * threads;
  static constexpr uint32_t values_at = keys_at + attention_tile * row_words;
  static constexpr uint32_t tables_at = values_at + attention_tile * row_words;
  static constexpr uint32_t scales_at = tables_at + 2 * span_keys;  // a key's, a value's
  static constexpr uint32_t queries_at = scales_at + (K == kv_type::int8 ? 2 * span_keys : 0);
  constexpr uint32_t query_words() const { return (a.kv.head_dim + depth - 1) / depth * depth / 2; }
  constexpr uint32_t query_pitch() const { return query_words() | 8; }
  /// For the queries of a run and a kv head.
  constexpr uint32_t blocks() const { return blocks_for(size_t{a.tokens_max} * a.group, queries); }

  struct warp_queries;
  /// g = lane / 4, t = lane % 4.
  struct lane_place {
    uint32_t warp, g, t;
    template <class Block>
    LETHE_BODY explicit lane_place(Block& block)
        : warp(block.thread() / warp_lanes),
          g(block.thread() % warp_lanes / 4),
          t(block.thread() % 4) {}
  };
  struct keys_of_run {
    kv_place key, value;
    uint32_t first, last;  // that one of the queries sees
    LETHE_BODY keys_of_run(const device_attention& a, const queries_of_run& v)
        : key(a.kv, a.kv.key_offset, v.kv_head(a), v.run.first_page),
          value(a.kv, a.kv.value_offset, v.kv_head(a), v.run.first_page),
          first(first_seen(v.position(0), a.window)),
          last(v.position(v.count - 1)) {}
  };
  /// Of eight keys the scores that a lane has: those of queries g, and then g + 8, with keys 16 * j
  /// + 4 * t and the next, or, of every second eight, the two behind these.
  struct scores {
    product_sums<as> of[eights];
  };
  LETHE_BODY static uint32_t scales_of(uint32_t base) { return scales_at + base % span_keys * 2; }
  LETHE_BODY static uint32_t key_of(uint32_t eight, uint32_t t) {
    return eight / 2 * 16 + 4 * t + eight % 2 * 2;
  }

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

  /// Where rows of a span are and, of int8, their scales. Keys that are not seen weigh nothing; in
  /// their place is one that is. Pages are asked for together, each of them takes its time.
  template <class Block>
  LETHE_BODY void note(Block& block, const keys_of_run& keys, uint32_t base, uint32_t end) const {
    constexpr uint32_t each = 4, at_once = each * threads;
    const uint32_t tiles_end = (end + attention_tile - 1) / attention_tile * attention_tile;
    for (uint32_t first = base + block.thread(); first < tiles_end; first += at_once) {
      uint64_t offset[each];
      float scale[each][2];
      LETHE_UNROLL
      for (uint32_t i = 0; i < each; i++) {
        uint32_t key = least_of(greatest_of(first + i * threads, keys.first), keys.last);
        offset[i] = keys.key.offset(key);
      }
      LETHE_UNROLL
      for (uint32_t i = 0; i < each && K == kv_type::int8; i++) {
        scale[i][0] = row_scale<K>(keys.key.head + offset[i], a.kv.head_dim);
        scale[i][1] = row_scale<K>(keys.value.head + offset[i], a.kv.head_dim);
      }
      LETHE_UNROLL
      for (uint32_t i = 0; i < each; i++) {
        uint32_t at = (first + i * threads) % span_keys * 2;
        if (first + i * threads >= tiles_end) break;
        block.put_word(tables_at + at, uint32_t(offset[i]));
        block.put_word(tables_at + at + 1, uint32_t(offset[i] >> 32));
        if constexpr (K == kv_type::int8) {
          for (uint32_t j = 0; j < 2; j++) block.put(scales_at + at + j, scale[i][j]);
        }
      }
    }
  }

  /// Keys [base, end) of a span, tile by tile. A tile's keys are copied while the values of the one
  /// before are taken, its values while it is scored.
  template <class Block>
  LETHE_BODY void walk(Block& block, const lane_place& at, const keys_of_run& keys, uint32_t base,
                       uint32_t end, warp_queries& mine) const {
    bring<true>(block, keys.key, base);
    for (; base < end; base += attention_tile) {
      block.template copies_there<0>();
      block.barrier();
      bring<false>(block, keys.value, base);
      const bool works = mine.see(base);
      scores all{};
      if (works) all = score(block, at);
      block.template copies_there<0>();
      block.barrier();
      if (base + attention_tile < end) bring<true>(block, keys.key, base + attention_tile);
      if (works) mine.take(block, at, *this, base, all);
    }
  }

  /// What fours of a row are turned by.
  template <bool keys>
  LETHE_BODY static uint32_t turn_of(uint32_t key) {
    return keys ? key % 2 * 2 + key / 4 % 2 * 4 : key / 4 % 4 * 2;
  }
  /// Columns d to d + 3 (d is a multiple of four) of a row.
  LETHE_BODY static uint32_t word_of(uint32_t key, uint32_t d, uint32_t turn) {
    return key * row_words + (d / 8 ^ turn) * 4 + d / 4 % 2 * 2;
  }
  LETHE_BODY bool is_whole(const kv_place& place) const {
    size_t all = reinterpret_cast<uintptr_t>(place.head) | a.kv.page_bytes | 2 * a.kv.head_dim;
    return K == kv_type::bf16 && all % 16 == 0;
  }

  /// A tile's keys, or its values, as bf16.
  template <bool keys_asked, class Block>
  LETHE_BODY void bring(Block& block, const kv_place& place, uint32_t base) const {
    const uint32_t d = a.kv.head_dim, table = tables_at + base % span_keys * 2;
    const bool whole = is_whole(place);
    constexpr uint32_t pieces = units * 4;  // of eight columns, of a row
    LETHE_UNROLL
    for (uint32_t i = 0; i < attention_tile * pieces / threads; i++) {
      uint32_t piece = block.thread() + i * threads, key = piece / pieces;
      uint32_t column = piece % pieces * 8;
      const uint8_t* row = located(block, place, key, table);
      uint32_t at =
          (keys_asked ? keys_at : values_at) + word_of(key, column, turn_of<keys_asked>(key));
      if (whole && column < d) {
        block.copy_four(at, row + 2 * column);
        continue;
      }
      for (uint32_t j = 0; j < 2; j++) {
        four_halves four = halves_at<K>(row, column + 4 * j, d);
        block.put_word(at + 2 * j, four.low);
        block.put_word(at + 2 * j + 1, four.high);
      }
    }
    block.copies_asked();
  }

  /// Not scaled.
  template <class Block>
  LETHE_BODY scores score(Block& block, const lane_place& at) const {
    scores s{};
    const uint32_t query = queries_at + (at.warp * own + at.g) * query_pitch() + 2 * at.t;
    const uint32_t own_key = at.g / 2 * 4 + at.g % 2, turn = turn_of<true>(own_key);
    for (uint32_t d = 0; d < 2 * query_words(); d += depth) {
      two_words low = block.get_two(query + d / 2);
      two_words high = block.get_two(query + 8 * query_pitch() + d / 2);
      product_rows<as> rows{low.v[0], high.v[0], low.v[1], high.v[1]};
      LETHE_UNROLL
      for (uint32_t e = 0; e < eights; e++) {
        uint32_t key = own_key + e / 2 * 16 + e % 2 * 2;
        two_words four = block.get_two(keys_at + word_of(key, d + 4 * at.t, turn));
        s.of[e] = block.template multiply<as>(rows, {four.v[0], four.v[1]}, s.of[e]);
      }
    }
    return s;
  }

  /// A lane's part of its warp's queries: of each, query g and query g + 8.
  struct warp_queries {
    uint32_t first[2], last[2];      // keys that they see; none if last < first
    uint32_t seen_first, seen_last;  // that one of the warp's sees
    softmax state[2], joined[2];
    product_sums<as> sums[units][4];  // as tensor_attend's outputs

    template <class Block>
    LETHE_BODY warp_queries(const tensor_walk& of, Block& block, const queries_of_run& v,
                            const lane_place& at) {
      for (uint32_t i = 0; i < 2; i++) {
        uint32_t q = at.warp * own + at.g + 8 * i;
        last[i] = q < v.count ? v.position(q) : 0;
        first[i] = q < v.count ? first_seen(last[i], of.a.window) : 1;
        joined[i] = nothing_seen();
      }
      bool any = at.warp * own < v.count;
      seen_last = any ? v.position(least_of(v.count, at.warp * own + own) - 1) : 0;
      seen_first = any ? first_seen(v.position(at.warp * own), of.a.window) : 1;
      for (uint32_t i = 0; i < own_sums; i++) block.put(i * threads + block.thread(), 0.0f);
      begin_span();
    }
    LETHE_BODY void begin_span() {
      for (softmax& s : state) s = nothing_seen();
      LETHE_UNROLL
      for (uint32_t i = 0; i < units * 4; i++) sums[i / 4][i % 4] = {};
    }
    LETHE_BODY bool see(uint32_t base) const {
      return seen_first <= seen_last && base <= seen_last && base + attention_tile > seen_first;
    }

    template <class Block>
    LETHE_BODY void take(Block& block, const lane_place& at, const tensor_walk& of, uint32_t base,
                         const scores& s) {
      uint32_t weights[eights][2];  // pairs of bf16
      float factor[2];
      LETHE_UNROLL
      for (uint32_t i = 0; i < 2; i++) factor[i] = weigh(block, at, of, base, s, i, weights);
      LETHE_UNROLL
      for (uint32_t u = 0; u < units; u++) {
        if (u * 32 < of.a.kv.head_dim) take_unit(block, at, u, factor, weights, sums[u]);
      }
    }
    /// What query i's sums so far are to be multiplied with. Sums of weights are added as in
    /// tensor_attend: those of keys 32 apart, 16, 8, 4 and 2.
    template <class Block>
    LETHE_BODY float weigh(Block& block, const lane_place& at, const tensor_walk& of, uint32_t base,
                           const scores& s, uint32_t i, uint32_t (&weights)[eights][2]) {
      const tile_keys mine =
          first[i] <= last[i] ? keys_within(base, first[i], last[i]) : tile_keys{0, 0};
      float scaled[eights][2], greatest = minus_infinity();
      LETHE_UNROLL
      for (uint32_t e = 0; e < eights; e++) {
        for (uint32_t j = 0; j < 2; j++) {
          uint32_t key = key_of(e, at.t) + j;
          float scale = 1.0f;
          if constexpr (K == kv_type::int8) scale = block.get(scales_of(base) + 2 * key);
          float score = s.of[e].c[2 * i + j] * scale * score_scale(of.a);
          scaled[e][j] = mine.has(key) ? score : minus_infinity();
          greatest = greater_of(greatest, scaled[e][j]);
        }
      }
      for (uint32_t m = 2; m > 0; m /= 2) {
        greatest = greater_of(greatest, block.shuffle_xor(greatest, m));
      }
      const bool any = mine.begin < mine.end;
      const float factor = any ? state[i].raise(greatest) : 1.0f;
      float totals[eights];
      LETHE_UNROLL
      for (uint32_t e = 0; e < eights; e++) {
        lane_scores w{0.0f, 0.0f}, scale{1.0f, 1.0f};
        if (any) w = weights_of({scaled[e][0], scaled[e][1]}, state[i].greatest);
        totals[e] = w.low + w.high;
        if constexpr (K == kv_type::int8) {
          uint32_t scales = scales_of(base) + 2 * key_of(e, at.t) + 1;
          // Of those that are not seen not even a scale that is no number.
          if (mine.has(key_of(e, at.t))) scale.low = block.get(scales);
          if (mine.has(key_of(e, at.t) + 1)) scale.high = block.get(scales + 2);
        }
        weights[e][i] = bf16_pair(w.low * scale.low, w.high * scale.high);
      }
      LETHE_UNROLL
      for (uint32_t apart = 4; apart > 1; apart /= 2) {
        LETHE_UNROLL
        for (uint32_t e = 0; e < apart; e++) totals[e] = totals[e] + totals[e + apart];
      }
      LETHE_UNROLL
      for (uint32_t m = 2; m > 0; m /= 2) {
        for (uint32_t e = 0; e < 2; e++) totals[e] = totals[e] + block.shuffle_xor(totals[e], m);
      }
      if (any) state[i].total = state[i].total + (totals[0] + totals[1]);
      return factor;
    }
    template <class Block>
    LETHE_BODY static void take_unit(Block& block, const lane_place& at, uint32_t u,
                                     const float (&factor)[2], const uint32_t (&weights)[eights][2],
                                     product_sums<as> (&of)[4]) {
      for (product_sums<as>& sum : of) {
        // Not a product alone: a negative zero would show what was not seen.
        for (uint32_t j = 0; j < 4; j++) sum.c[j] = fused(sum.c[j], factor[j / 2], 0.0f);
      }
      LETHE_UNROLL
      for (uint32_t e = 0; e < eights; e += 2) {
        four_halves v[4];
        for (uint32_t j = 0; j < 4; j++) {
          uint32_t key = e * 8 + 4 * at.t + j;
          two_words four =
              block.get_two(values_at + word_of(key, u * 32 + 4 * at.g, turn_of<false>(4 * at.t)));
          v[j] = {four.v[0], four.v[1]};
        }
        product_rows<as> rows{weights[e][0], weights[e][1], weights[e + 1][0], weights[e + 1][1]};
        for (uint32_t i = 0; i < 4; i++) {
          of[i] = block.template multiply<as>(rows, column_of(v, i), of[i]);
        }
      }
    }

    /// As join_spans does.
    template <class Block>
    LETHE_BODY void join_span(Block& block) {
      join_factors f[2];
      LETHE_UNROLL
      for (uint32_t i = 0; i < 2; i++) f[i] = join(joined[i], state[i]);
      LETHE_UNROLL
      for (uint32_t i = 0; i < own_sums; i++) {
        uint32_t at = i * threads + block.thread();
        float sum = sums[i / 16][i / 4 % 4].c[i % 4];
        block.put(at, f[i % 4 / 2].joined(block.get(at), sum));
      }
      begin_span();
    }
    template <class Block>
    LETHE_BODY void finish(Block& block, const lane_place& at, const tensor_walk& of,
                           const queries_of_run& v) const {
      const device_attention& a = of.a;
      LETHE_UNROLL
      for (uint32_t j = 0; j < 2; j++) {
        uint32_t q = at.warp * own + at.g + 8 * j;
        if (q >= v.count) continue;
        float* out =
            a.out + (v.run.out_row + v.token(q)) * a.out_stride + size_t{v.head(q)} * a.kv.head_dim;
        for (uint32_t i = 0; i < own_sums / 2; i++) {
          uint32_t d = i / 8 * 32 + 8 * at.t + i % 2 * 4 + i / 2 % 4;
          uint32_t sum = i / 8 * 16 + i / 2 % 4 * 4 + 2 * j + i % 2;
          if (d < a.kv.head_dim)
            out[d] = answer(block.get(sum * threads + block.thread()), joined[j].total);
        }
      }
    }
  };
};

}  // namespace lethe::device
