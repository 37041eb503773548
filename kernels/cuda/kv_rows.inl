#pragma once

#include "kernels/cuda/cuda_row.hpp"
#include "kernels/cuda/simt.hpp"

namespace lethe::device {

/// Where one kv head's key or value rows of one request lie.
struct kv_place {
  uint8_t* head;  // in a page at the pool's start
  size_t page_bytes;
  const uint32_t* pages;
  uint32_t page_tokens, row_bytes;

  LETHE_BODY kv_place(const device_kv& kv, size_t offset, uint32_t kv_head, uint32_t first_page)
      : head(reinterpret_cast<uint8_t*>(kv.pool) + offset + kv_head * kv.head_bytes),
        page_bytes(kv.page_bytes),
        pages(kv.pages + first_page),
        page_tokens(kv.page_tokens),
        row_bytes(kv_row_bytes(kv.type, kv.head_dim)) {}

  /// Of a row, from `head` on.
  LETHE_BODY size_t offset(uint32_t position) const {
    return pages[position / page_tokens] * page_bytes + size_t{position % page_tokens} * row_bytes;
  }
};

template <kv_type K>
LETHE_BODY float kv_element(const uint8_t* row, uint32_t d, uint32_t head_dim) {
  if constexpr (K == kv_type::f32) return load<float>(row + 4 * size_t{d});
  if constexpr (K == kv_type::bf16) return from_bf16(load<uint16_t>(row + 2 * size_t{d}));
  if constexpr (K == kv_type::int8) {
    return float(int8_t(row[d])) * load<float>(row + kv_row_bytes(K, head_dim) - 4);
  }
}

/// A warp for each key and each value.
template <kv_type K>
struct kv_store {
  static constexpr uint32_t threads = 256, warps = threads / warp_lanes;
  device_kv kv;
  const token_run* runs;
  uint32_t run_count, tokens_max, kv_heads;
  const float *k, *v;
  size_t stride;

  launch_shape shape() const {
    return {run_count, blocks_for(size_t{tokens_max} * kv_heads * 2, warps)};
  }

  template <class Block>
  LETHE_BODY void operator()(Block& block) const {
    token_run run = runs[block.x()];
    uint32_t item = block.y() * warps + block.thread() / warp_lanes;
    uint32_t token = item / (2 * kv_heads), head = item / 2 % kv_heads;
    if (token >= run.tokens) return;
    bool is_key = item % 2 == 0;
    size_t from = (run.row + token) * stride + size_t{head} * kv.head_dim;
    kv_place place(kv, is_key ? kv.key_offset : kv.value_offset, head, run.first_page);
    uint8_t* row = place.head + place.offset(run.position + token);
    if constexpr (K == kv_type::int8) {
      put_int8(block, (is_key ? k : v) + from, row);
    } else {
      put(block, (is_key ? k : v) + from, row);
    }
  }

 private:
  template <class Block>
  LETHE_BODY void put(Block& block, const float* from, uint8_t* row) const {
    uint32_t lane = block.thread() % warp_lanes;
    for (uint32_t d = lane; d < kv.head_dim; d += warp_lanes) {
      if constexpr (K == kv_type::f32) reinterpret_cast<float*>(row)[d] = from[d];
      if constexpr (K == kv_type::bf16) reinterpret_cast<uint16_t*>(row)[d] = to_bf16(from[d]);
    }
  }
  /// q = round(x * 127 / amax), scale = amax / 127; q is 0 where 127 / amax is infinite, since what
  /// does not fit an int becomes INT32_MIN, whose lowest byte is 0.
  template <class Block>
  LETHE_BODY void put_int8(Block& block, const float* from, uint8_t* row) const {
    uint32_t lane = block.thread() % warp_lanes, padded = kv_row_bytes(K, kv.head_dim) - 4;
    float amax = 0.0f;
    for (uint32_t d = lane; d < kv.head_dim; d += warp_lanes) {
      amax = greater_of(absolute(from[d]), amax);
    }
    for (uint32_t m = warp_lanes / 2; m > 0; m /= 2) {
      amax = greater_of(block.shuffle_xor(amax, m), amax);
    }
    float inverse = 127.0f / amax;
    for (uint32_t d = lane; d < padded; d += warp_lanes) {
      row[d] = d < kv.head_dim ? uint8_t(round_to_int(from[d] * inverse)) : uint8_t(0);
    }
    if (lane == 0) *reinterpret_cast<float*>(row + padded) = amax / 127.0f;
  }
};

}  // namespace lethe::device
