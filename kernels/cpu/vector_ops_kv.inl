#pragma once

#include "kernels/cpu/lanes_math.inl"

// How keys and values lie in a page (kv_view says it in words), and how they get there.

namespace lethe {
namespace {

/// What a cache holds: `get` makes 16 of them floats, `one` makes one; `put` makes 16 floats them.
struct f32_numbers {
  static constexpr kv_type type = kv_type::f32;
  using number = float;
  static lanes get(const float* p) { return load(p); }
  static float one(float x) { return x; }
  static void put(float* p, lanes x) { store(p, x); }
};
struct bf16_numbers {
  static constexpr kv_type type = kv_type::bf16;
  using number = uint16_t;
  static lanes get(const uint16_t* p) { return from_bf16(p); }
  static float one(uint16_t x) { return __builtin_bit_cast(float, uint32_t{x} << 16); }
  static void put(uint16_t* p, lanes x) { store_bf16(p, x); }
};
struct int8_numbers {
  static constexpr kv_type type = kv_type::int8;
  using number = int8_t;
  static void put(int8_t* p, lanes x) { store_int8(p, round_to_int(x)); }
};

/// Whether numbers stand for themselves times a scale of their row.
template <class T>
constexpr bool scaled = T::type == kv_type::int8;
/// Numbers of a key that lie side by side.
template <class T>
constexpr uint32_t key_group = kv_key_group(T::type);
template <class T>
inline lanes times(lanes x, lanes scale) {
  return scaled<T> ? mul(x, scale) : x;
}

/// f with the numbers of a type of cache.
template <class F>
inline void for_numbers(kv_type type, F f) {
  switch (type) {
    case kv_type::f32:
      return f(f32_numbers{});
    case kv_type::bf16:
      return f(bf16_numbers{});
    case kv_type::int8:
      return f(int8_numbers{});
  }
}

/// Where a token's key and value begin. The key's groups of numbers are `page_tokens` groups apart,
/// and those of the tokens after it in the page lie beside them; the value's numbers are
/// `value_step` apart.
template <class T>
struct kv_place {
  typename T::number *key, *value;
  float *key_scale, *value_scale;  // for scaled numbers
  uint32_t value_step;
};

/// Numbers in a row, those that only fill it up included.
template <class T>
inline uint32_t padded(uint32_t head_dim) {
  return scaled<T> ? (head_dim + 3) / 4 * 4 : head_dim;
}

/// Of a request's page, counted from its first.
template <class T>
inline kv_place<T> place_at(const kv_view& kv, uint32_t of_page, uint32_t row) {
  using number = typename T::number;
  size_t numbers = padded<T>(kv.head_dim), scales = kv.page_tokens * numbers * sizeof(number);
  std::byte* page = kv.pool + kv.pages[of_page] * kv.page_bytes;
  std::byte *keys = page + kv.key_offset, *values = page + kv.value_offset;
  uint32_t group = kv_value_group(T::type, kv.page_tokens);
  number* value = reinterpret_cast<number*>(values) + (row - row % group) * numbers + row % group;
  kv_place<T> at{reinterpret_cast<number*>(keys) + row * key_group<T>, value, nullptr, nullptr,
                 group};
  if (scaled<T>) {
    at.key_scale = reinterpret_cast<float*>(keys + scales) + row;
    at.value_scale = reinterpret_cast<float*>(values + scales) + row;
  }
  return at;
}
template <class T>
inline kv_place<T> place_of(const kv_view& kv, uint32_t position) {
  return place_at<T>(kv, position / kv.page_tokens, position % kv.page_tokens);
}

inline float greatest_in(const float* from, uint32_t head_dim) {
  lanes greatest = zero();
  for_vectors(head_dim,
              [&](size_t i, auto get, auto) { greatest = max(absolute(get(from + i)), greatest); });
  return max_of(greatest);
}

/// A key or a value whose groups of `group` numbers begin `step` numbers apart. int8: q = round(x *
/// 127 / amax), scale = amax / 127. Of a row so small that 127 / amax is infinite, as of zeros,
/// every q is 0: what does not fit an int becomes INT32_MIN, whose lowest byte is 0.
template <class T, uint32_t group>
void put_row(typename T::number* to, size_t step, float* scale, const float* from,
             uint32_t head_dim) {
  float amax = scaled<T> ? greatest_in(from, head_dim) : 0.0f;
  lanes inverse = set1(127.0f / amax);
  auto at = [&](uint32_t d) { return to + d / group * step + d % group; };
  for (uint32_t d = 0; d < head_dim; d += 16) {
    uint32_t count = least_of(16, head_dim - d);
    lanes x = times<T>(load_partial(from + d, count), inverse);
    typename T::number n[16];
    if (step == 1 && count == 16) {
      T::put(to + d, x);
      continue;
    }
    T::put(n, x);
    for (uint32_t i = 0; i < count; i++) *at(d + i) = n[i];
  }
  for (uint32_t d = head_dim; d < padded<T>(head_dim); d++) *at(d) = 0;
  if (scaled<T>) *scale = amax / 127.0f;
}

/// The keys of 16 tokens that lie side by side in a page.
template <class T>
void put_keys(const kv_place<T>& at, size_t page_tokens, const float* from, size_t stride,
              uint32_t head_dim) {
  constexpr uint32_t group = key_group<T>;
  float inverses[16] = {};
  for (uint32_t t = 0; scaled<T> && t < 16; t++) {
    float amax = greatest_in(from + t * stride, head_dim);
    inverses[t] = 127.0f / amax;
    at.key_scale[t] = amax / 127.0f;
  }
  lanes inverse = load(inverses);
  for (uint32_t d = 0; d < head_dim; d += 16) {
    uint32_t count = least_of(16, head_dim - d);
    lanes r[16];
#pragma GCC unroll 16
    for (uint32_t t = 0; t < 16; t++) r[t] = load_partial(from + t * stride + d, count);
    transpose(r);
    for (uint32_t i = 0; i < count; i += group) {
      typename T::number* to = at.key + (d + i) * page_tokens;
      if (group == 1) {
        T::put(to, r[i]);
        continue;
      }
      typename T::number n[group][16];  // behind the head's end: zeros
      for (uint32_t j = 0; j < group; j++) T::put(n[j], times<T>(r[i + j], inverse));
      for (uint32_t t = 0; t < 16; t++) {
        for (uint32_t j = 0; j < group; j++) to[t * group + j] = n[j][t];
      }
    }
  }
}

template <class T>
void store_rows(const kv_view& kv, uint32_t position, uint32_t tokens, const float* k,
                const float* v, size_t stride) {
  for (uint32_t t = 0, count; t < tokens; t += count) {
    kv_place<T> at = place_of<T>(kv, position + t);
    uint32_t row = (position + t) % kv.page_tokens;
    bool together = row % 16 == 0 && row + 16 <= kv.page_tokens && t + 16 <= tokens;
    count = together ? 16 : 1;
    if (together) {
      put_keys<T>(at, kv.page_tokens, k + t * stride, stride, kv.head_dim);
    } else {
      put_row<T, key_group<T>>(at.key, size_t{kv.page_tokens} * key_group<T>, at.key_scale,
                               k + t * stride, kv.head_dim);
    }
    for (uint32_t i = t; i < t + count; i++) {
      at = place_of<T>(kv, position + i);
      put_row<T, 1>(at.value, at.value_step, at.value_scale, v + i * stride, kv.head_dim);
    }
  }
}

void kv_store(const kv_view& kv, uint32_t position, uint32_t tokens, const float* k, const float* v,
              size_t stride) {
  for_numbers(kv.type, [&]<class T>(T) { store_rows<T>(kv, position, tokens, k, v, stride); });
}

}  // namespace
}  // namespace lethe
