#pragma once

#include "kernels/cuda/attend_tile.inl"

// How spans of the context are joined. A span is summed from nothing, tile by tile, and spans are
// joined in the order of their positions: a decode sums them side by side, longer runs one after
// the other, with the same bits.

namespace lethe::device {

/// What sums so far and a span's own are brought to.
struct join_factors {
  float before, span;
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

/// Without negative zeros, which would show whether there was a span with nothing in it.
LETHE_BODY float answer(float sum, float total) { return (sum + 0.0f) / total; }

/// Where a decode's spans wait to be joined, from `first` on: of a run's head its spans, each its
/// softmax and then its sums.
struct span_place {
  const device_attention& a;
  float* first;
  LETHE_BODY float* at(uint32_t run, uint32_t head, uint32_t span) const {
    size_t spans = attention_spans(a.tiles_max);
    return first + ((size_t{run} * a.heads + head) * spans + span) * span_floats(a.kv.head_dim);
  }
};

/// Joins what decodes have of their spans.
struct join_spans {
  static constexpr uint32_t threads = 128;
  device_attention a;
  float* spans;

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
      const float* of = span_place{a, spans}.at(run_index, head, span - first);
      join_factors f = join(all, {of[0], of[1]});
      sum = f.joined(sum, of[2 + d]);
    }
    a.out[run.out_row * a.out_stride + size_t{head} * a.kv.head_dim + d] = answer(sum, all.total);
  }
};

}  // namespace lethe::device
