#pragma once

#include <functional>

#include "parallel/accelerator.hpp"
#include "parallel/weight_cuts.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// One pinned piece is filled while the other is copied.
inline constexpr size_t upload_pieces = 2, upload_piece_bytes = size_t{16} << 20;

struct upload_options {
  uint32_t threads = 1;  // that read, with the calling one
  /// Called by the calling thread with bytes on their way and in all, rising, at last with all.
  std::function<void(uint64_t, uint64_t)> progress;
  size_t piece_bytes = upload_piece_bytes;  // a multiple of 256, weight_cuts::room_least or more
};

/// Reads placed weights into pinned memory and copies them to `to`, which has room for `bytes`.
/// What lies between them becomes zeros.
result<void> upload(accelerator& on, const weight_source& from,
                    const std::vector<placed_weight>& all, std::byte* to, size_t bytes,
                    const upload_options& how);

}  // namespace lethe
