#pragma once

#include "kernels/cpu/attend_weights.inl"

// How a context's spans are joined: each is summed from nothing, and they are joined in order,
// whether one thread has summed them all or each another one.

namespace lethe {
namespace {

/// What a query has summed: its greatest score, the total of its weights relative to that, and so
/// its values.
struct summed {
  float &greatest, &total;
  float* sums;
};
inline summed query_sums(const attention_work& w, uint32_t q) {
  return {w.in(w.at.maxima)[q], w.in(w.at.totals)[q], w.in(w.at.sums) + q * w.at.padded_dim};
}
inline summed joined_sums(const attention_work& w, uint32_t q) {
  return {w.in(w.at.joined_maxima)[q], w.in(w.at.joined_totals)[q],
          w.in(w.at.joined_sums) + q * w.at.padded_dim};
}
inline void see_nothing(const summed& s, size_t numbers) {
  s.greatest = -__builtin_inff(), s.total = 0.0f;
  for (size_t i = 0; i < numbers; i += 16) store(s.sums + i, zero());
}

/// What sums so far and a span's own are multiplied with.
struct join_factors {
  lanes before, span;
  lanes joined(lanes sum, lanes of_span) const {
    return fma(of_span, span, fma(sum, before, zero()));
  }
};
/// Of sixteen queries. To those of whom a span has nothing, as its total says, nothing happens.
inline join_factors join(lanes& greatest, lanes& total, lanes of_greatest, lanes of_total) {
  lane_mask some = not_less(of_total, set1(0x1p-126f));
  lanes most = max(of_greatest, greatest);
  lanes by[] = {sub(greatest, most), sub(of_greatest, most)};
  two_to_each(by);
  join_factors f{select(some, by[0], set1(1)), select(some, by[1], zero())};
  greatest = select(some, most, greatest);
  total = select(some, f.joined(total, of_total), total);
  return f;
}

/// What a span gave joins that of those before. Not inlined: few tiles end one.
[[gnu::noinline]] void join_span(const attention_work& w) {
  for (uint32_t q = 0; q < w.queries; q += 16) {
    float *maxima = w.in(w.at.joined_maxima) + q, *totals = w.in(w.at.joined_totals) + q;
    lanes greatest = load(maxima), total = load(totals);
    join_factors f =
        join(greatest, total, load(w.in(w.at.maxima) + q), load(w.in(w.at.totals) + q));
    store(maxima, greatest), store(totals, total);
    float before[16], of_span[16];
    store(before, f.before), store(of_span, f.span);
    for (uint32_t i = 0; i < least_of(16, w.queries - q); i++) {
      summed all = joined_sums(w, q + i), span = query_sums(w, q + i);
      join_factors one{set1(before[i]), set1(of_span[i])};
      for (size_t d = 0; d < w.at.padded_dim; d += 16)
        store(all.sums + d, one.joined(load(all.sums + d), load(span.sums + d)));
      see_nothing(span, w.at.padded_dim);
    }
  }
}

/// After a tile.
inline void end_tile(const attention_work& w, const tile_span& next) {
  bool goes_on = next.base % span_keys != 0 && next.first < next.last;
  if (!goes_on && w.several_spans) [[unlikely]]
    join_span(w);
}

/// Without negative zeros, which would show whether there was a span with nothing in it.
inline void answer(const float* sums, float total, uint32_t head_dim, float* out) {
  for_vectors(head_dim, [&](size_t i, auto get, auto put) {
    put(out + i, div(add(get(sums + i), zero()), set1(total)));
  });
}

/// For join_spans.
inline void leave_span(const summed& span, uint32_t head_dim, float* to) {
  to[0] = span.greatest, to[1] = span.total;
  for_vectors(head_dim, [&](size_t i, auto get, auto put) { put(to + 2 + i, get(span.sums + i)); });
}

/// Sums of a query's spans, in order; returns their total.
[[gnu::noinline]] float sum_spans(const float* spans, uint32_t count, uint32_t head_dim,
                                  float* out) {
  lanes greatest = set1(-__builtin_inff()), total = zero();
  for_vectors(head_dim, [&](size_t i, auto, auto put) { put(out + i, zero()); });
  for (uint32_t s = 0; s < count; s++, spans += span_floats(head_dim)) {
    join_factors f = join(greatest, total, set1(spans[0]), set1(spans[1]));
    for_vectors(head_dim, [&](size_t i, auto get, auto put) {
      put(out + i, f.joined(get(out + i), get(spans + 2 + i)));
    });
  }
  return first_of(total);
}

void join_spans(kv_type, const float* spans, uint32_t count, uint32_t head_dim, float* out) {
  answer(out, sum_spans(spans, count, head_dim, out), head_dim, out);
}

}  // namespace
}  // namespace lethe
