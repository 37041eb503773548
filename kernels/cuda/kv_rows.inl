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

/// A number of a row; int8: without the row's scale.
template <kv_type K>
LETHE_BODY float kv_element(const uint8_t* row, uint32_t d) {
  if constexpr (K == kv_type::f32) return load<float>(row + 4 * size_t{d});
  if constexpr (K == kv_type::bf16) return from_bf16(load<uint16_t>(row + 2 * size_t{d}));
  if constexpr (K == kv_type::int8) return float(int8_t(row[d]));
}

template <kv_type K>
LETHE_BODY float row_scale(const uint8_t* row, uint32_t head_dim) {
  return K == kv_type::int8 ? load<float>(row + kv_row_bytes(K, head_dim) - 4) : 1.0f;
}

}  // namespace lethe::device
