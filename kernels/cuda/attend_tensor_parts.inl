#pragma once

#include "kernels/cuda/attend_tile.inl"

// What tensor cores are given of keys and values, and how spans of the context are joined. A span
// is summed from nothing, tile by tile, and spans are joined in the order of their positions: a
// decode sums them side by side, longer runs one after the other, with the same bits.

namespace lethe::device {

/// Numbers d to d + 3 of a row as bf16 (d is a multiple of four), zeros behind the row's end.
struct four_halves {
  uint32_t low, high;  // d and d + 1; d + 2 and d + 3
};

/// int8: without the row's scale; so they are exact. Of a row of a multiple of four, where d is in
/// it.
template <kv_type K>
LETHE_BODY four_halves halves_in(const uint8_t* row, uint32_t d) {
  if constexpr (K == kv_type::bf16) {
    return {load<uint32_t>(row + 2 * size_t{d}), load<uint32_t>(row + 2 * size_t{d} + 4)};
  } else {
    float f[4];
    uint32_t four = K == kv_type::int8 ? load<uint32_t>(row + d) : 0;
    for (uint32_t i = 0; i < 4; i++) {
      f[i] = K == kv_type::int8 ? float(int8_t(four >> 8 * i)) : kv_element<K>(row, d + i);
    }
    return {bf16_pair(f[0], f[1]), bf16_pair(f[2], f[3])};
  }
}
/// Of any row, wherever d is.
template <kv_type K>
LETHE_BODY four_halves halves_at(const uint8_t* row, uint32_t d, uint32_t head_dim) {
  if (d >= head_dim) return {0, 0};
  if constexpr (K == kv_type::int8) {
    return halves_in<K>(row, d);  // rows are padded with zeros
  } else if (K == kv_type::bf16 && head_dim % 2 == 0) {
    const uint8_t* at = row + 2 * size_t{d};
    return {load<uint32_t>(at), d + 2 < head_dim ? load<uint32_t>(at + 4) : 0};
  } else {
    float f[4];
    for (uint32_t i = 0; i < 4; i++) {
      f[i] = d + i < head_dim ? kv_element<K>(row, d + i) : 0.0f;
    }
    return {bf16_pair(f[0], f[1]), bf16_pair(f[2], f[3])};
  }
}

/// Column i of four rows of four.
LETHE_BODY product_columns<product_type::bf16> column_of(const four_halves (&v)[4], uint32_t i) {
  if (i == 0) return {low_halves(v[0].low, v[1].low), low_halves(v[2].low, v[3].low)};
  if (i == 1) return {high_halves(v[0].low, v[1].low), high_halves(v[2].low, v[3].low)};
  if (i == 2) return {low_halves(v[0].high, v[1].high), low_halves(v[2].high, v[3].high)};
  return {high_halves(v[0].high, v[1].high), high_halves(v[2].high, v[3].high)};
}

/// What sums so far and a span's own are brought to.
struct join_factors {
  float before, span;
  /// Never a negative zero, which would show whether there was a span with nothing in it.
  LETHE_BODY float joined(float sum, float of_span) const {
    return fused(of_span, span, fused(sum, before, 0.0f));
  }
};
LETHE_BODY join_factors join(softmax& all, softmax span) {
  if (span.total == 0.0f) return {1.0f, 0.0f};
  float greatest = greater_of(span.greatest, all.greatest);
  join_factors f{two_to(all.greatest - greatest), two_to(span.greatest - greatest)};
  all = {greatest, f.joined(all.total, span.total)};
  return f;
}

/// Where a decode's spans wait to be joined: of a run's head its spans, each its softmax and then
/// its sums.
struct span_place {
  const device_attention& a;
  LETHE_BODY float* at(uint32_t run, uint32_t head, uint32_t span) const {
    size_t spans = attention_spans(a.tiles_max);
    return a.scratch + ((size_t{run} * a.heads + head) * spans + span) * (a.kv.head_dim + 2);
  }
};

/// Joins what decodes have of their spans.
struct join_spans {
  static constexpr uint32_t threads = 128;
  device_attention a;

  launch_shape shape() const { return {a.run_count * a.heads, blocks_for(a.kv.head_dim, threads)}; }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    uint32_t run_index = block.x() / a.heads, head = block.x() % a.heads;
    uint32_t d = block.y() * threads + block.thread();
    token_run run = a.runs[run_index];
    if (run.tokens == 0 || d >= a.kv.head_dim) return;
    uint32_t first = first_seen(run.position, a.window) / span_keys;
    softmax all = nothing_seen();
    float sum = 0.0f;
    for (uint32_t span = first; span <= run.position / span_keys; span++) {
      const float* of = span_place{a}.at(run_index, head, span - first);
      join_factors f = join(all, {of[0], of[1]});
      sum = f.joined(sum, of[2 + d]);
    }
    a.out[run.out_row * a.out_stride + size_t{head} * a.kv.head_dim + d] = sum / all.total;
  }
};

}  // namespace lethe::device
