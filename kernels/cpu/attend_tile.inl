#pragma once

#include "kernels/cpu/vector_ops_kv.inl"

namespace lethe {
namespace {

/// The keys [first, last) of the tile that starts at position `base`: those that exist and that
/// some query of the part sees. No other row is read.
struct tile_span {
  uint32_t base, first, last;
};

/// Where the key rows of a tile lie; value rows lie `to_value` bytes further. Outside of the span
/// stands the nearest row within it, so that whole vectors of keys can be loaded.
struct kv_rows {
  const std::byte* key[attention_tile];
  ptrdiff_t to_value;
  size_t bytes;  // of a row
};

inline void locate(const kv_view& kv, const tile_span& t, kv_rows& rows) {
  rows.to_value = ptrdiff_t(kv.value_offset) - ptrdiff_t(kv.key_offset);
  rows.bytes = kv_row_bytes(kv.type, kv.head_dim);
  uint32_t page = t.first / kv.page_tokens, row = t.first % kv.page_tokens;
  for (uint32_t at = t.first; at < t.last; page++, row = 0) {
    const std::byte* keys = kv.pool + kv.pages[page] * kv.page_bytes + kv.key_offset;
    for (; row < kv.page_tokens && at < t.last; row++, at++) {
      rows.key[at - t.base] = keys + row * rows.bytes;
    }
  }
  for (uint32_t i = 0; i < t.first - t.base; i++) rows.key[i] = rows.key[t.first - t.base];
  for (uint32_t i = t.last - t.base; i < attention_tile; i++) rows.key[i] = rows.key[i - 1];
}

/// Asks for row i's key and value, which come from memory while the tile before is computed.
inline void prefetch_row(const kv_rows& rows, uint32_t i) {
  for (size_t b = 0; b < rows.bytes; b += 64) {
    __builtin_prefetch(rows.key[i] + b, 0, 2);
    __builtin_prefetch(rows.key[i] + rows.to_value + b, 0, 2);
  }
}

/// 16 words of a row from word w on, `count` of them within the row.
inline lanes load_words(const std::byte* row, size_t row_bytes, uint32_t w, uint32_t count) {
  if (row_bytes % 4 == 0) {
    const float* words = reinterpret_cast<const float*>(row) + w;
    return count == 16 ? load(words) : load_partial(words, count);
  }
  float words[16] = {};  // bf16 of an odd head: rows are not aligned, the last word is half a one
  size_t left = row_bytes - size_t{w} * 4;
  __builtin_memcpy(words, row + size_t{w} * 4, left < sizeof words ? left : sizeof words);
  return load(words);
}

/// 16 keys as columns: to[d * attention_tile + i] is element d of rows[i]. Words of four bytes
/// are transposed, then split into their elements.
template <class Row>
void load_keys(const std::byte* const* rows, uint32_t head_dim, float* to) {
  constexpr uint32_t n = Row::elements_per_word;
  size_t data_bytes = Row::data_bytes(head_dim);
  uint32_t words = (head_dim + n - 1) / n;
  typename Row::columns columns(rows, head_dim);
  for (uint32_t w = 0; w < words; w += 16) {
    uint32_t count = least_of(16, words - w);
    lanes r[16];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < 16; i++) r[i] = load_words(rows[i], data_bytes, w, count);
    transpose(r);
    for (uint32_t i = 0; i < count; i++) {
      uint32_t d = (w + i) * n;
      columns.split(r[i], to + d * attention_tile, least_of(n, head_dim - d));
    }
  }
}

template <class Row>
inline void load_value(const std::byte* row, uint32_t head_dim, float* to) {
  Row from(row, head_dim);
  uint32_t d = 0;
  for (; d + 16 <= head_dim; d += 16) store(to + d, from.whole(d));
  if (d < head_dim) store(to + d, from.partial(d, head_dim - d));
}

/// Where a tile's floats go: keys as [head_dim][attention_tile], values as
/// [attention_tile][value_stride].
struct tile_floats {
  float *keys, *values;
  size_t value_stride;
};

/// Columns of keys outside of the span get some number; rows of values outside are left alone.
/// Row i of `next` is asked for beside row i.
template <class Row>
void load_rows(const kv_rows& rows, const kv_rows* next, const tile_span& t, uint32_t head_dim,
               const tile_floats& to) {
  uint32_t first = t.first - t.base, last = t.last - t.base;
  for (uint32_t i = first / 16 * 16; i < last; i += 16) {
    load_keys<Row>(rows.key + i, head_dim, to.keys + i);
  }
  for (uint32_t i = first; i < last; i++) {
    if (next != nullptr) prefetch_row(*next, i);
    load_value<Row>(rows.key[i] + rows.to_value, head_dim, to.values + i * to.value_stride);
  }
}

inline void load_tile(const kv_view& kv, const kv_rows& rows, const kv_rows* next,
                      const tile_span& t, const tile_floats& to) {
  switch (kv.type) {
    case kv_type::f32:
      return load_rows<f32_row>(rows, next, t, kv.head_dim, to);
    case kv_type::bf16:
      return load_rows<bf16_row>(rows, next, t, kv.head_dim, to);
    case kv_type::int8:
      return load_rows<int8_row>(rows, next, t, kv.head_dim, to);
  }
}

}  // namespace
}  // namespace lethe
