#pragma once

#include "parallel/link.hpp"

namespace lethe {

/// What a sealed link has more than a plain one. Its buffers hold sealed bytes only.
struct link::seal {
  // The first chunk of a frame carries the head. Small enough to stay in the second-level cache.
  static constexpr size_t chunk_bytes = 64 << 10;
  static constexpr size_t chunk_bytes_sealed = sizeof(head) + chunk_bytes + aead_tag_bytes;

  explicit seal(keys k)
      : sealing(aead::sealing(aead_id::aes_128_gcm, k.out.key.view())),
        opening(aead::opening(aead_id::aes_128_gcm, k.in.key.view())),
        out_nonce{std::move(k.out.nonce)},
        in_nonce{std::move(k.in.nonce)},
        out(new std::byte[chunk_bytes_sealed]),
        in(new std::byte[in_bytes]) {}

  static constexpr size_t in_bytes = 2 * chunk_bytes_sealed;
  aead sealing, opening;
  nonce_counter out_nonce, in_nonce;
  std::unique_ptr<std::byte[]> out, in;
  size_t out_begin = 0, out_end = 0, in_begin = 0, in_end = 0;
};

}  // namespace lethe
