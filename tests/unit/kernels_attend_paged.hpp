#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu_row.hpp"

// One request's attention as a caller would run it: keys and values go into shuffled pages chunk
// by chunk, pages that the window has left are wiped. Whatever must not be read is NaN.

namespace lethe {

struct attention_case {
  uint32_t tokens = 0, heads = 1, head_dim = 64, window = 0;
  kv_type type = kv_type::f32;
  uint32_t page_tokens = 16;
  uint32_t chunk = 0;        // tokens a step; 0: all at once
  uint32_t block = 0;        // tokens of a chunk that one call attends; 0: all
  uint32_t step_heads = 0;   // heads that one call attends; 0: all
  bool spans_apart = false;  // each in a call of its own, joined then
};

struct attention_input {
  std::vector<float> q, k, v;
};

inline std::vector<float> normal_floats(size_t n, uint32_t seed, float deviation = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> x(n);
  for (float& f : x) f = normal(random);
  return x;
}

inline attention_input input_of(const attention_case& c, uint32_t seed = 1) {
  size_t kv = size_t{c.tokens} * c.head_dim;
  return {normal_floats(kv * c.heads, seed, 1.5f), normal_floats(kv, seed + 1),
          normal_floats(kv, seed + 2)};
}

/// Of the key at a position, so that a tile's greatest score is greater than the one's before: by
/// less than raised_by, by more every other time.
inline float rise_of(uint32_t position) { return 1.0f + float(position / attention_tile); }
inline attention_input rising_input_of(const attention_case& c, uint32_t seed = 1) {
  attention_input in = input_of(c, seed);
  for (size_t i = 0; i < in.k.size(); i++) in.k[i] *= rise_of(uint32_t(i / c.head_dim));
  return in;
}

/// Pages of NaN, in no order, with room before, between and after keys and values.
class paged_cache {
 public:
  explicit paged_cache(const attention_case& c) : case_(c) {
    size_t rows = size_t{c.page_tokens} * kv_row_bytes(c.type, c.head_dim);
    rows_bytes_ = (rows + 3) / 4 * 4;
    page_bytes_ = 2 * rows_bytes_ + 12;
    uint32_t pages = (c.tokens + c.page_tokens - 1) / c.page_tokens;
    pages_.resize(pages);
    std::iota(pages_.begin(), pages_.end(), 1u);
    std::shuffle(pages_.begin(), pages_.end(), std::mt19937(7));
    // One allocation of the exact size: a sanitizer sees what is read behind it.
    bytes_ = (pages + 1) * page_bytes_;
    pool_ = std::make_unique<std::byte[]>(bytes_);
    std::memset(pool_.get(), 0xff, bytes_);
  }
  kv_view view() {
    return {pool_.get(),   page_bytes_,       4,          8 + rows_bytes_,
            pages_.data(), case_.page_tokens, case_.type, case_.head_dim};
  }
  /// Wipes the pages that hold only tokens before `first`; where they are said to be now, whoever
  /// reads them ends: int8 has no NaN that would show it.
  void free_before(uint32_t first) {
    for (; freed_ < first / case_.page_tokens; freed_++) {
      std::memset(pool_.get() + pages_[freed_] * page_bytes_, 0xff, page_bytes_);
      pages_[freed_] = 1u << 30;
    }
  }

 private:
  attention_case case_;
  size_t rows_bytes_ = 0, page_bytes_ = 0, bytes_ = 0;
  std::unique_ptr<std::byte[]> pool_;
  std::vector<uint32_t> pages_;
  uint32_t freed_ = 0;
};

/// Makes the keys or the values of one head in one page what a device has: rows, each with its
/// scale.
inline void make_rows(kv_type type, uint32_t head_dim, uint32_t page_tokens, bool are_keys,
                      std::byte* half) {
  size_t row_bytes = kv_row_bytes(type, head_dim), scale = type == kv_type::int8 ? 4 : 0;
  size_t numbers = row_bytes - scale;
  size_t size = kv_number_bytes(type), group = are_keys ? size * kv_key_group(type) : size;
  size_t side_by_side = are_keys ? page_tokens : kv_value_group(type, page_tokens);
  std::vector<std::byte> in_page(half, half + page_tokens * row_bytes);
  for (size_t r = 0; r < page_tokens; r++) {
    std::byte* row = half + r * row_bytes;
    const std::byte* first = in_page.data() + r / side_by_side * side_by_side * numbers;
    for (size_t at = 0; at < numbers; at += group) {
      std::memcpy(row + at, first + at * side_by_side + r % side_by_side * group, group);
    }
    std::memcpy(row + numbers, in_page.data() + numbers * page_tokens + r * scale, scale);
  }
}

/// Spans from the last to the first, into floats that were NaN, then joined.
inline void attend_spans_apart(const cpu_row& row, attention_part part) {
  uint32_t first = part.window == 0 || part.position < part.window
                       ? 0
                       : (part.position + 1 - part.window) / span_keys;
  uint32_t count = (part.position + part.tokens - 1) / span_keys + 1 - first;
  uint32_t dim = part.kv.head_dim;
  size_t of_query = size_t{count} * span_floats(dim);
  std::vector<float> spans(part.tokens * part.heads * of_query, std::nanf(""));
  for (uint32_t s = count; s-- > 0;) {
    part.span = {spans.data() + s * span_floats(dim), of_query, first + s};
    row.attend(part);
  }
  for (uint32_t q = 0; q < part.tokens * part.heads; q++) {
    float* out = part.out + q / part.heads * part.out_stride + size_t{q % part.heads} * dim;
    row.join_spans(part.kv.type, spans.data() + q * of_query, count, dim, out);
  }
}

inline void attend_tokens(const cpu_row& row, const attention_case& c, const kv_view& kv,
                          const attention_input& in, std::vector<float>& out, uint32_t begin,
                          uint32_t end) {
  uint32_t step = c.step_heads ? c.step_heads : c.heads;
  for (uint32_t h = 0; h < c.heads; h += step) {
    uint32_t heads = std::min(step, c.heads - h), stride = c.heads * c.head_dim;
    size_t floats = attention_scratch_floats(end - begin, heads, c.head_dim), at = 0;
    std::vector<float> scratch(floats + 16, std::nanf(""));
    while (reinterpret_cast<uintptr_t>(scratch.data() + at) % 64 != 0) at++;
    size_t first = size_t{begin} * stride + size_t{h} * c.head_dim;
    attention_part part{kv,
                        in.q.data() + first,
                        stride,
                        out.data() + first,
                        stride,
                        begin,
                        end - begin,
                        heads,
                        c.window,
                        1.0f / std::sqrt(float(c.head_dim)),
                        scratch.data() + at};
    c.spans_apart ? attend_spans_apart(row, part) : row.attend(part);
  }
}

inline std::vector<float> run_case(const cpu_row& row, const attention_case& c,
                                   const attention_input& in) {
  paged_cache cache(c);
  std::vector<float> out(in.q.size(), std::nanf(""));
  uint32_t chunk = c.chunk ? c.chunk : c.tokens;
  for (uint32_t begin = 0; begin < c.tokens; begin += chunk) {
    uint32_t end = std::min(begin + chunk, c.tokens), block = c.block ? c.block : chunk;
    size_t at = size_t{begin} * c.head_dim;
    row.kv_store(cache.view(), begin, end - begin, in.k.data() + at, in.v.data() + at, c.head_dim);
    if (c.window != 0 && begin >= c.window) cache.free_before(begin + 1 - c.window);
    for (uint32_t t = begin; t < end; t += block) {
      attend_tokens(row, c, cache.view(), in, out, t, std::min(t + block, end));
    }
  }
  return out;
}

/// Softmax attention by the definition, in double, on what was given to be stored.
inline std::vector<double> expected_of(const attention_case& c, const attention_input& in) {
  std::vector<double> out(in.q.size());
  for (uint32_t p = 0; p < c.tokens; p++) {
    uint32_t first = c.window == 0 || p < c.window ? 0 : p + 1 - c.window;
    for (uint32_t h = 0; h < c.heads; h++) {
      size_t at = (size_t{p} * c.heads + h) * c.head_dim;
      std::vector<double> weights;
      double total = 0, scale = 1.0 / std::sqrt(double(c.head_dim));
      for (uint32_t j = first; j <= p; j++) {
        double score = 0;
        for (uint32_t d = 0; d < c.head_dim; d++) {
          score += double(in.q[at + d]) * in.k[size_t{j} * c.head_dim + d];
        }
        weights.push_back(std::exp(score * scale));
        total += weights.back();
      }
      for (uint32_t j = first; j <= p; j++) {
        for (uint32_t d = 0; d < c.head_dim; d++) {
          out[at + d] += weights[j - first] / total * in.v[size_t{j} * c.head_dim + d];
        }
      }
    }
  }
  return out;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

}  // namespace lethe
