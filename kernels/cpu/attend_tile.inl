#pragma once

#include "kernels/cpu/attend_product.inl"
#include "kernels/cpu/vector_ops_kv.inl"

namespace lethe {
namespace {

/// The keys [first, last) of the tile that starts at position `base`: those that exist and that
/// some query of the part sees. No page without one of them is read.
struct tile_span {
  uint32_t base, first, last;
};

/// Vectors of 16 keys [begin, end) that hold a tile's keys.
inline span_of_k vectors_within(const tile_span& t) {
  return {(t.first - t.base) / 16, (t.last - t.base + 15) / 16};
}

/// Pages of a multiple of 16 tokens hold the 16 keys of a vector side by side.
inline bool has_whole_vectors(const kv_view& kv) { return kv.page_tokens % 16 == 0; }

/// 16 tokens' share of what a page holds of keys and of values, scales included: whichever numbers
/// they are, a page is read once.
struct page_share {
  const std::byte *keys, *values;
};

/// Where a tile's vectors of 16 keys lie; for those outside of the span stands the nearest.
template <class T>
struct tile_places {
  kv_place<T> at[attention_tile / 16];
  page_share share[attention_tile / 16];
};

/// In whole vectors. Within a page the next one is as far as 16 tokens take.
template <class T>
[[gnu::noinline]] void locate(const kv_view& kv, const tile_span& t, tile_places<T>& places) {
  const size_t numbers = 16 * padded<T>(kv.head_dim),
               bytes = 16 * kv_row_bytes(T::type, kv.head_dim);
  span_of_k vectors = vectors_within(t);
  uint32_t first = t.base + vectors.begin * 16;
  uint32_t page = first / kv.page_tokens, row = first % kv.page_tokens;
  kv_place<T> at{};
  page_share share{};
  for (uint32_t v = vectors.begin; v < vectors.end; v++) {
    if (row == kv.page_tokens) row = 0, page++;
    if (row == 0 || v == vectors.begin) {
      const std::byte* begin = kv.pool + kv.pages[page] * kv.page_bytes;
      at = place_at<T>(kv, page, row);
      share = {begin + kv.key_offset + row / 16 * bytes,
               begin + kv.value_offset + row / 16 * bytes};
    }
    places.at[v] = at, places.share[v] = share;
    at.key += 16 * key_group<T>, at.value += numbers;
    if (scaled<T>) at.key_scale += 16, at.value_scale += 16;
    share.keys += bytes, share.values += bytes;
    row += 16;
  }
  auto same = [&](uint32_t v, uint32_t as) {
    places.at[v] = places.at[as];
    places.share[v] = places.share[as];
  };
  for (uint32_t v = 0; v < vectors.begin; v++) same(v, vectors.begin);
  for (uint32_t v = vectors.end; v < attention_tile / 16; v++) same(v, v - 1);
}

/// What is read next, asked for into the second cache while a product's panel is made: every so
/// many steps the next line of as many shares as the panel has vectors, so that with as many steps
/// as a key has numbers these are all of theirs.
template <class T>
struct coming_beside {
  static constexpr uint32_t every = 4 / sizeof(typename T::number);
  const std::byte* at[block_vectors];

  [[gnu::always_inline]] void ask(size_t step) const {
#pragma GCC unroll 4
    for (const std::byte* share : at) __builtin_prefetch(share + step * (64 / every), 0, 2);
  }
  /// step(i) for each i of the span, which may lie anywhere in a panel.
  template <class F>
  [[gnu::always_inline]] void beside(span_of_k k, F step) const {
    size_t i = k.begin;
    for (; i + every <= k.end; i += every) {
      ask(i);
#pragma GCC unroll 8
      for (uint32_t j = 0; j < every; j++) step(i + j);
    }
    for (; i < k.end; i++) step(i);
  }
};

/// Half of a tile's keys and values, shared out among panels. Narrow ones behind wide ones ask
/// again; with narrow ones alone, and a head dimension that is no multiple of 64, a panel may ask
/// past a share's end and leave out what the next begins with.
template <class T>
struct coming {
  using panel = coming_beside<T>;
  static constexpr uint32_t together = block_rows;
  static constexpr uint32_t shares = attention_tile / 16;
  const std::byte* at[shares];
  uint32_t lines;  // of a share

  /// Keys or values.
  coming(const tile_places<T>& places, const std::byte* page_share::*half, uint32_t head_dim)
      : lines(head_dim / coming_beside<T>::every) {
    for (uint32_t v = 0; v < shares; v++) at[v] = places.share[v].*half;
  }
  /// Every other share of both, from `first` (0 or 1) on.
  coming(const tile_places<T>& places, uint32_t head_dim, uint32_t first)
      : lines(head_dim / coming_beside<T>::every) {
    for (uint32_t v = first, i = 0; v < shares; v += 2, i++) {
      at[i] = places.share[v].keys;
      at[i + shares / 2] = places.share[v].values;
    }
  }
  panel of_panel(uint32_t column, uint32_t steps) const {
    uint32_t first = column / (16 * block_vectors) * (steps / coming_beside<T>::every);
    panel p;
    for (uint32_t j = 0; j < block_vectors; j++) {
      p.at[j] = at[(first / lines * block_vectors + j) % shares] + size_t{first % lines} * 64;
    }
    return p;
  }
};

/// The keys and values of two tiles, asked for into the second cache evenly while `parts` of the
/// work on those before are done: four streams of lines side by side, as a processor that reads
/// ahead follows one in each 4 KiB. The same tile twice is asked for twice, a default one asks for
/// nothing.
class coming_evenly {
 public:
  coming_evenly() = default;
  template <class T>
  coming_evenly(const tile_places<T>& first, const tile_places<T>& second, const kv_view& kv,
                uint32_t parts)
      : tiles_{first.share, second.share},
        share_bytes_((16 * kv_row_bytes(kv.type, kv.head_dim) + 63) / 64 * 64) {
    a_part_ = (shares * share_bytes_ * (whole / 64) + parts - 1) / parts;
    begin_share();
  }
  /// Not inlined, g++ takes it for a call without effect.
  [[gnu::always_inline]] void ask(uint32_t parts) {
    for (due_ += parts * a_part_; due_ >= whole; due_ -= whole) {
#pragma GCC unroll 4
      for (const std::byte* stream : streams_) __builtin_prefetch(stream + at_, 0, 2);
      at_ += 64;
      if (at_ == share_bytes_) begin_share();
    }
  }

 private:
  static constexpr uint32_t shares = attention_tile / 16, whole = 256;
  /// Behind the last one nothing more is asked for, nor is more due than what was just asked for.
  [[gnu::noinline]] void begin_share() {
    if (begun_ == shares) {
      a_part_ = 0, due_ = whole;
      return;
    }
    streams_[0] = tiles_[0][begun_].keys, streams_[1] = tiles_[0][begun_].values;
    streams_[2] = tiles_[1][begun_].keys, streams_[3] = tiles_[1][begun_].values;
    at_ = 0, begun_++;
  }
  const page_share* tiles_[2] = {};  // of each its shares
  const std::byte* streams_[4] = {};
  uint32_t share_bytes_ = 0, at_ = 0, begun_ = 0;
  uint32_t a_part_ = 0, due_ = 0;  // parts of a line, `whole` of them one
};

/// A product beside which nothing is asked for.
struct nothing_coming {
  using panel = nothing_coming;
  static constexpr uint32_t together = wide_rows;
  nothing_coming of_panel(uint32_t, uint32_t) const { return {}; }
  template <class F>
  [[gnu::always_inline]] void beside(span_of_k k, F step) const {
    for (size_t i = k.begin; i < k.end; i++) step(i);
  }
};

/// A tile's keys as they lie in pages: row d is element d of all 64.
template <class T, class Coming>
struct page_keys {
  using terms = of_floats;
  static constexpr uint32_t together = Coming::together;
  const tile_places<T>& places;
  const kv_view& kv;
  Coming next;

  template <uint32_t vectors>
  struct columns {
    const typename T::number* key[vectors];
    size_t step;
    typename Coming::panel next;

    template <uint32_t, class F>
    [[gnu::always_inline]] void each(span_of_k k, F f) const {
      size_t at = k.begin * step;
      next.beside(
          k, [&](size_t d) __attribute__((always_inline)) {
            lanes row[vectors];
#pragma GCC unroll 8
            for (uint32_t v = 0; v < vectors; v++) row[v] = T::get(key[v] + at);
            f(d, row);
            at += step;
          });
    }
  };
  template <uint32_t vectors>
  columns<vectors> panel(uint32_t column) const {
    columns<vectors> c{{}, kv.page_tokens, next.of_panel(column, kv.head_dim)};
#pragma GCC unroll 8
    for (uint32_t v = 0; v < vectors; v++) c.key[v] = places.at[column / 16 + v].key;
    return c;
  }
};

/// A tile's values as they lie in pages: row k is the value of key k, `step` numbers after the one
/// before.
template <class T, class Coming>
struct page_values {
  using terms = of_floats;
  static constexpr uint32_t together = Coming::together;
  const tile_places<T>& places;
  size_t step;
  Coming next;

  struct columns {
    const page_values& values;
    uint32_t column;
    typename Coming::panel next;

    template <uint32_t vectors, class F>
    [[gnu::always_inline]] void each(span_of_k k, F f) const {
      size_t step = values.step;
      for (uint32_t i = k.begin, end; i < k.end; i = end) {
        end = least_of(i / 16 * 16 + 16, k.end);
        const typename T::number* value = values.places.at[i / 16].value + i % 16 * step + column;
        next.beside(
            {i, end}, [&](size_t of) __attribute__((always_inline)) {
              lanes row[vectors];
#pragma GCC unroll 8
              for (uint32_t v = 0; v < vectors; v++) row[v] = T::get(value + v * 16);
              f(of, row);
              value += step;
            });
      }
    }
  };
  template <uint32_t vectors>
  columns panel(uint32_t column) const {
    return {*this, column, next.of_panel(column, attention_tile)};
  }
};

/// Keys as [head_dim][attention_tile] floats.
template <class T>
void load_keys(const kv_view& kv, const tile_span& t, float* to) {
  if (has_whole_vectors(kv)) {
    span_of_k vectors = vectors_within(t);
    for (uint32_t v = vectors.begin; v < vectors.end; v++) {
      kv_place<T> at = place_of<T>(kv, t.base + v * 16);
      for (uint32_t d = 0; d < kv.head_dim; d++) {
        store(to + d * attention_tile + v * 16, T::get(at.key + d * kv.page_tokens));
      }
    }
    return;
  }
  for (uint32_t i = t.first; i < t.last; i++) {
    kv_place<T> at = place_of<T>(kv, i);
    for (uint32_t d = 0; d < kv.head_dim; d++) {
      to[d * attention_tile + i - t.base] = T::one(at.key[d * kv.page_tokens]);
    }
  }
}

/// Values as [attention_tile][stride] floats.
template <class T>
void load_values(const kv_view& kv, const tile_span& t, float* to, size_t stride) {
  for (uint32_t i = t.first; i < t.last; i++) {
    kv_place<T> at = place_of<T>(kv, i);
    float* row = to + (i - t.base) * stride;
    uint32_t d = 0;
    for (; d + 16 <= kv.head_dim; d += 16) store(row + d, T::get(at.value + d));
    if (d == kv.head_dim) continue;
    typename T::number rest[16] = {};
    for (uint32_t e = d; e < kv.head_dim; e++) rest[e - d] = at.value[e];
    store(row + d, T::get(rest));
  }
}

}  // namespace
}  // namespace lethe
