#pragma once

#include <cstddef>

#include "kernels/cuda/cuda_row.hpp"

struct CUgraphExec_st;

namespace lethe {

/// A cudaGraphExec_t: calls that were queued once and can be queued again as one.
using device_graph = CUgraphExec_st*;

enum class memory_kind : uint8_t { device, pinned };

/// A device's memory, and the one stream on which a shard's work goes there in order. What kernels
/// do is in `cuda_row`. Errors are a cudaError_t; 0 is none.
class accelerator {
 public:
  virtual ~accelerator() = default;

  /// The calling thread works with this device from here on, until it uses another.
  virtual device_error use() = 0;

  /// Null where there is no room. What it holds is anything; it starts at a multiple of 256.
  virtual std::byte* allocate(memory_kind kind, size_t bytes) = 0;
  virtual void free(memory_kind kind, std::byte* at, size_t bytes) = 0;

  virtual device_stream stream() = 0;
  /// Queued; host memory on either side is pinned, and left alone until `finish`.
  virtual device_error copy(void* to, const void* from, size_t bytes) = 0;
  /// So many stretches of `bytes`, their beginnings `pitch` apart on both sides.
  virtual device_error copy_stretches(void* to, const void* from, size_t pitch, size_t bytes,
                                      size_t count) = 0;

  /// What is queued between the two becomes a graph instead of being done.
  virtual device_error begin_graph() = 0;
  virtual device_error end_graph(device_graph& made) = 0;
  virtual device_error queue(device_graph graph) = 0;
  virtual void free(device_graph graph) = 0;

  /// Waits for all that is queued; what went wrong with it.
  virtual device_error finish() = 0;
  /// Whether all that is queued is done, without waiting.
  virtual device_error ask(bool& done) = 0;
};

/// A block of an accelerator's memory.
class device_memory {
 public:
  device_memory() = default;
  device_memory(accelerator& on, memory_kind kind, size_t bytes)
      : on_(&on),
        kind_(kind),
        at_(bytes == 0 ? nullptr : on.allocate(kind, bytes)),
        bytes_(at_ == nullptr ? 0 : bytes) {}
  device_memory(const device_memory&) = delete;
  ~device_memory() {
    if (at_ != nullptr) on_->free(kind_, at_, bytes_);
  }

  std::byte* data() const { return at_; }
  size_t size() const { return bytes_; }

 private:
  accelerator* on_ = nullptr;
  memory_kind kind_ = memory_kind::device;
  std::byte* at_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace lethe
