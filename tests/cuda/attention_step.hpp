#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/cuda/target.hpp"
#include "tests/unit/kernels_attend_paged.hpp"

// Steps of attention for checks: requests, their pages in no order, and what the reference makes of
// them.

namespace lethe {

extern const cpu_row reference;

/// One request's share of a step: `before` of its tokens are stored already.
struct request {
  uint32_t before, tokens;
};

inline constexpr uint32_t run_tokens = 32;  // of what is stored

struct step {
  std::vector<request> requests;
  uint32_t head_dim = 64, kv_heads = 1, group = 1;
  uint32_t heads = 0, first_head = 0;  // of all query heads, those of the rank; 0: all
  uint32_t window = 0, page_tokens = 16;
  kv_type type = kv_type::f32;
  bool aligned = false;  // rows, to sixteen bytes, if they are that long
  bool rises = false;    // keys, so that scores do from tile to tile

  /// Of a page, before its first key.
  uint32_t prefix() const { return aligned ? 16 : 4; }
  uint32_t query_heads() const { return heads ? heads : kv_heads * group; }
  uint32_t q_cols() const { return query_heads() * head_dim; }
  uint32_t kv_cols() const { return kv_heads * head_dim; }
  uint32_t tokens_max() const {
    uint32_t most = 0;
    for (const request& r : requests) most = std::max(most, r.tokens);
    return most;
  }
};

/// Runs of a step over pages in no order. Rows of x, of the output and page tables lie one request
/// after the other; `stored` are all tokens so far, as if one step had them.
struct laid_out {
  std::vector<token_run> stored, runs;
  std::vector<uint32_t> pages;
  uint32_t rows = 0, stored_rows = 0;
  size_t half_bytes, page_bytes;
  uint32_t page_count = 1;  // page 0 is nobody's

  explicit laid_out(const step& s) {
    half_bytes = (size_t{s.page_tokens} * kv_row_bytes(s.type, s.head_dim) + 3) / 4 * 4;
    page_bytes = 2 * half_bytes * s.kv_heads + (s.aligned ? 16 : 12);
    for (const request& r : s.requests) {
      uint32_t all = r.before + r.tokens, first_page = uint32_t(pages.size());
      for (uint32_t t = 0; t < all; t += run_tokens) {
        stored.push_back({stored_rows + t, 0, t, std::min(run_tokens, all - t), first_page});
      }
      runs.push_back({rows, rows + 1, r.before, r.tokens, first_page});
      rows += r.tokens;
      stored_rows += all;
      for (uint32_t p = 0; p < all; p += s.page_tokens) pages.push_back(page_count++);
    }
    std::shuffle(pages.begin(), pages.end(), std::mt19937(7));
  }
};

inline device_kv kv_of(const step& s, const laid_out& at, std::byte* pool, const uint32_t* pages) {
  return {pool,
          at.page_bytes,
          s.prefix(),
          s.prefix() + at.half_bytes,
          2 * at.half_bytes,
          pages,
          s.page_tokens,
          s.type,
          s.head_dim};
}
inline kv_view view_of(const device_kv& kv, uint32_t kv_head, uint32_t first_page) {
  return {kv.pool,
          kv.page_bytes,
          kv.key_offset + kv_head * kv.head_bytes,
          kv.value_offset + kv_head * kv.head_bytes,
          kv.pages + first_page,
          kv.page_tokens,
          kv.type,
          kv.head_dim};
}

struct numbers {
  std::vector<float> q, k, v;
  numbers(const step& s, const laid_out& at)
      : q(normal_floats(size_t{at.rows} * s.q_cols(), 1, 1.5f)),
        k(normal_floats(size_t{at.stored_rows} * s.kv_cols(), 2)),
        v(normal_floats(size_t{at.stored_rows} * s.kv_cols(), 3)) {
    for (const token_run& run : at.stored)
      for (uint32_t i = 0; s.rises && i < run.tokens * s.kv_cols(); i++)
        k[size_t{run.row} * s.kv_cols() + i] *= rise_of(run.position + i / s.kv_cols());
  }
};

inline void store_by_reference(const step& s, const laid_out& at, const numbers& in,
                               const device_kv& kv) {
  for (const token_run& run : at.stored) {
    for (uint32_t h = 0; h < s.kv_heads; h++) {
      size_t from = size_t{run.row} * s.kv_cols() + h * s.head_dim;
      reference.kv_store(view_of(kv, h, run.first_page), run.position, run.tokens,
                         in.k.data() + from, in.v.data() + from, s.kv_cols());
    }
  }
}

/// What all queries of a request have left behind belongs to nobody any more.
inline void free_unseen(const step& s, const laid_out& at, std::vector<uint32_t>& pages) {
  for (const token_run& run : at.runs) {
    bool all_seen = s.window == 0 || run.position < s.window;
    uint32_t first = all_seen ? 0 : run.position + 1 - s.window;
    for (uint32_t p = 0; p < first / s.page_tokens; p++) pages[run.first_page + p] = 0;
  }
}

/// As parallel/stage does: for each kv head the rank's query heads that read it.
inline void attend_by_reference(const step& s, const laid_out& at, const numbers& in,
                                const device_kv& kv, std::vector<float>& out) {
  for (const token_run& run : at.runs) {
    for (uint32_t h = 0; run.tokens != 0 && h < s.query_heads(); h++) {
      std::vector<float> scratch(attention_scratch_floats(run.tokens, 1, s.head_dim) + 16);
      float* aligned = scratch.data();
      while (reinterpret_cast<uintptr_t>(aligned) % 64 != 0) aligned++;
      size_t column = size_t{h} * s.head_dim;
      reference.attend({view_of(kv, (s.first_head + h) / s.group, run.first_page),
                        in.q.data() + size_t{run.row} * s.q_cols() + column, s.q_cols(),
                        out.data() + size_t{run.out_row} * s.q_cols() + column, s.q_cols(),
                        run.position, run.tokens, 1, s.window, 1.0f / std::sqrt(float(s.head_dim)),
                        aligned});
    }
  }
}

inline device_error attend_on(const target& t, const step& s, const laid_out& at,
                              const device_kv& kv, const token_run* runs, const float* q,
                              float* out) {
  uint32_t tiles = 0;
  for (const token_run& run : at.runs) {
    tiles = std::max(tiles, attention_tiles(run.position, s.window));
  }
  auto count = uint32_t(at.runs.size());
  std::vector<float> nothing(
      decode_scratch_floats(t.row->arithmetic, count, s.query_heads(), s.head_dim, tiles), NAN);
  room<float> scratch(t, s.tokens_max() == 1 ? nothing : std::vector<float>{});
  device_attention a{.kv = kv,
                     .runs = runs,
                     .run_count = count,
                     .tokens_max = s.tokens_max(),
                     .q = q,
                     .q_stride = s.q_cols(),
                     .out = out,
                     .out_stride = s.q_cols(),
                     .heads = s.query_heads(),
                     .kv_heads = s.kv_heads,
                     .first_head = s.first_head,
                     .group = s.group,
                     .window = s.window,
                     .scale = 1.0f / std::sqrt(float(s.head_dim)),
                     .tiles_max = tiles,
                     .scratch = scratch.data()};
  return t.row->attend(a, t.stream);
}

inline std::string say(const step& s, const std::string& what, device_error error) {
  return what + ", error " + std::to_string(error) + ": head " + std::to_string(s.head_dim) +
         ", kv heads " + std::to_string(s.kv_heads) + ", group " + std::to_string(s.group) +
         ", window " + std::to_string(s.window) + ", pages of " + std::to_string(s.page_tokens) +
         ", type " + std::to_string(int(s.type)) + ", first request " +
         std::to_string(s.requests[0].before) + " + " + std::to_string(s.requests[0].tokens);
}

/// A pool of the reference's as a device has it.
inline std::vector<std::byte> as_rows(const step& s, const laid_out& at,
                                      std::vector<std::byte> pool) {
  device_kv kv = kv_of(s, at, pool.data(), nullptr);
  for (uint32_t i = 0; i < at.page_count * s.kv_heads; i++) {
    std::byte* page = kv.pool + i / s.kv_heads * kv.page_bytes;
    size_t head = i % s.kv_heads * kv.head_bytes;
    make_rows(s.type, s.head_dim, s.page_tokens, true, page + kv.key_offset + head);
    make_rows(s.type, s.head_dim, s.page_tokens, false, page + kv.value_offset + head);
  }
  return pool;
}

/// Keys and values of runs on their way to pages; no queries, nothing turned.
inline device_heads only_stored(const device_kv& kv, const token_run* runs, uint32_t count,
                                uint32_t kv_heads, const float* k, const float* v) {
  return {.kv = kv,
          .runs = runs,
          .run_count = count,
          .tokens_max = run_tokens,
          .k = k,
          .v = v,
          .kv_stride = size_t{kv_heads} * kv.head_dim,
          .kv_heads = kv_heads};
}

/// Stores all tokens on the target and in `pool`, by the reference; whether both are the same.
inline bool store(const target& t, const step& s, const laid_out& at, const numbers& in,
                  room<std::byte>& device_pool, std::vector<std::byte>& pool) {
  room<uint32_t> pages(t, at.pages);
  room<token_run> runs(t, at.stored);
  room<float> k(t, in.k), v(t, in.v);
  device_error error =
      t.row->place_heads(only_stored(kv_of(s, at, device_pool.data(), pages.data()), runs.data(),
                                     uint32_t(at.stored.size()), s.kv_heads, k.data(), v.data()),
                         t.stream);
  store_by_reference(s, at, in, kv_of(s, at, pool.data(), at.pages.data()));
  return error == 0 && same_bits_of(device_pool.read(), as_rows(s, at, pool));
}

}  // namespace lethe
