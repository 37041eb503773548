#pragma once

#include "kernels/cpu/lanes_math.inl"

// How one head's key or value of one token lies in a page.

namespace lethe {
namespace {

/// f(pointer to 16 elements) with `count` elements of p and zeros after them.
template <class T, class F>
inline lanes from_partial(const T* p, uint32_t count, F f) {
  T all[16] = {};
  for (uint32_t i = 0; i < count; i++) all[i] = p[i];
  return f(all);
}

struct f32_row {
  static constexpr uint32_t elements_per_word = 1;
  static size_t data_bytes(uint32_t head_dim) { return size_t{head_dim} * 4; }
  struct columns {
    columns(const std::byte* const*, uint32_t) {}
    void split(lanes words, float* to, uint32_t) const { store(to, words); }
  };
  const float* x;
  f32_row(const std::byte* row, uint32_t) : x(reinterpret_cast<const float*>(row)) {}
  lanes whole(uint32_t d) const { return load(x + d); }
  lanes partial(uint32_t d, uint32_t count) const { return load_partial(x + d, count); }
  static void put(std::byte* row, const float* from, uint32_t head_dim) {
    float* to = reinterpret_cast<float*>(row);
    for_vectors(head_dim,
                [&](size_t i, auto get, auto store_to) { store_to(to + i, get(from + i)); });
  }
};

struct bf16_row {
  static constexpr uint32_t elements_per_word = 2;
  static size_t data_bytes(uint32_t head_dim) { return size_t{head_dim} * 2; }
  struct columns {
    columns(const std::byte* const*, uint32_t) {}
    void split(lanes words, float* to, uint32_t count) const {
      uint32_t w[16];
      store(reinterpret_cast<float*>(w), words);
      for (uint32_t i = 0; i < 16; i++) to[i] = __builtin_bit_cast(float, w[i] << 16);
      if (count == 1) return;
      to += attention_tile;
      for (uint32_t i = 0; i < 16; i++) to[i] = __builtin_bit_cast(float, w[i] & 0xffff0000);
    }
  };
  const uint16_t* x;
  bf16_row(const std::byte* row, uint32_t) : x(reinterpret_cast<const uint16_t*>(row)) {}
  lanes whole(uint32_t d) const { return from_bf16(x + d); }
  lanes partial(uint32_t d, uint32_t count) const {
    return from_partial(x + d, count, [](const uint16_t* p) { return from_bf16(p); });
  }
  static void put(std::byte* row, const float* from, uint32_t head_dim) {
    uint16_t* to = reinterpret_cast<uint16_t*>(row);
    uint32_t i = 0;
    for (; i + 16 <= head_dim; i += 16) store_bf16(to + i, load(from + i));
    uint16_t rest[16];
    store_bf16(rest, load_partial(from + i, head_dim - i));
    for (uint32_t k = 0; i + k < head_dim; k++) to[i + k] = rest[k];
  }
};

struct int8_row {
  static uint32_t padded(uint32_t head_dim) { return kv_row_bytes(kv_type::int8, head_dim) - 4; }
  static constexpr uint32_t elements_per_word = 4;
  static size_t data_bytes(uint32_t head_dim) { return padded(head_dim); }
  struct columns {
    float scales[16];
    columns(const std::byte* const* rows, uint32_t head_dim) {
      for (uint32_t i = 0; i < 16; i++) scales[i] = int8_row(rows[i], head_dim).scale;
    }
    void split(lanes words, float* to, uint32_t count) const {
      uint32_t w[16];
      store(reinterpret_cast<float*>(w), words);
      for (uint32_t e = 0; e < count; e++, to += attention_tile) {
        for (uint32_t i = 0; i < 16; i++) {
          to[i] = float(int32_t(w[i] << (24 - 8 * e)) >> 24) * scales[i];
        }
      }
    }
  };
  const int8_t* x;
  float scale;
  int8_row(const std::byte* row, uint32_t head_dim)
      : x(reinterpret_cast<const int8_t*>(row)),
        scale(*reinterpret_cast<const float*>(row + padded(head_dim))) {}
  lanes whole(uint32_t d) const { return mul(from_int8(x + d), set1(scale)); }
  lanes partial(uint32_t d, uint32_t count) const {
    lanes q = from_partial(x + d, count, [](const int8_t* p) { return from_int8(p); });
    return mul(q, set1(scale));
  }
  static void put(std::byte* row, const float* from, uint32_t head_dim);
};

/// q = round(x * 127 / amax), scale = amax / 127. Of a row so small that 127 / amax is infinite, as
/// of zeros, every q is 0: what does not fit an int becomes INT32_MIN, whose lowest byte is 0.
void int8_row::put(std::byte* row, const float* from, uint32_t head_dim) {
  lanes greatest = zero();
  for_vectors(head_dim,
              [&](size_t i, auto get, auto) { greatest = max(absolute(get(from + i)), greatest); });
  float amax = max_of(greatest);
  lanes inverse = set1(127.0f / amax);
  int8_t* to = reinterpret_cast<int8_t*>(row);
  for (uint32_t d = 0; d < head_dim; d += 16) {
    uint32_t count = least_of(16, head_dim - d);
    int8_t q[16];
    store_int8(q, round_to_int(mul(load_partial(from + d, count), inverse)));
    for (uint32_t i = 0; i < count; i++) to[d + i] = q[i];
  }
  for (uint32_t d = head_dim; d < padded(head_dim); d++) to[d] = 0;
  *reinterpret_cast<float*>(row + padded(head_dim)) = amax / 127.0f;
}

template <class Row>
void store_rows(const kv_view& kv, uint32_t position, uint32_t tokens, const float* k,
                const float* v, size_t stride) {
  size_t row_bytes = kv_row_bytes(kv.type, kv.head_dim);
  for (uint32_t t = 0; t < tokens; t++) {
    uint32_t at = position + t;
    std::byte* page =
        kv.pool + kv.pages[at / kv.page_tokens] * kv.page_bytes + at % kv.page_tokens * row_bytes;
    Row::put(page + kv.key_offset, k + t * stride, kv.head_dim);
    Row::put(page + kv.value_offset, v + t * stride, kv.head_dim);
  }
}

void kv_store(const kv_view& kv, uint32_t position, uint32_t tokens, const float* k, const float* v,
              size_t stride) {
  switch (kv.type) {
    case kv_type::f32:
      return store_rows<f32_row>(kv, position, tokens, k, v, stride);
    case kv_type::bf16:
      return store_rows<bf16_row>(kv, position, tokens, k, v, stride);
    case kv_type::int8:
      return store_rows<int8_row>(kv, position, tokens, k, v, stride);
  }
}

}  // namespace
}  // namespace lethe
