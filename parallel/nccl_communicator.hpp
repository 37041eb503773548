#pragma once

#include <set>

#include "parallel/nccl_session.hpp"

namespace lethe {

enum class element : uint8_t { f32, bf16 };

/// Work of one device, in order: a cudaStream_t. Nothing here looks inside.
using nccl_stream = void*;

/// One rank's end of a group whose ranks are GPUs. Calls only enqueue work on a stream, so they can
/// be captured in a graph once each shape was called before (the first call connects ranks, which
/// takes NCCL a while). They are collective and made by one thread per rank, in the same order on
/// every rank, over all groups. After an error every later call of any group fails at once; what a
/// call named is in use until nccl_world::wait or close has returned.
class nccl_communicator {
 public:
  nccl_communicator(std::shared_ptr<nccl_session> session, nccl_session::group group, uint32_t rank,
                    uint32_t size)
      : session_(std::move(session)), group_(group), rank_(rank), size_(size) {}

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }

  /// `to` may be `from`, or of the other calls its own part of the whole.
  result<void> all_reduce(const void* from, void* to, size_t count, element e, nccl_stream on);
  /// Each rank's `count`, one behind the other.
  result<void> all_gather(const void* from, void* to, size_t count, element e, nccl_stream on);
  /// Of sums over size() times `count` the rank's own.
  result<void> reduce_scatter(const void* from, void* to, size_t count, element e, nccl_stream on);
  result<void> broadcast(void* data, size_t count, element e, uint32_t root, nccl_stream on);
  result<void> send(const void* from, size_t count, element e, uint32_t to, nccl_stream on);
  result<void> recv(void* to, size_t count, element e, uint32_t from, nccl_stream on);

  /// Enqueues, on all ranks, so much of `zeros` along every way that calls ever took (a graph
  /// takes them again unseen) that it fills the buffers of NCCL's own behind them. These take
  /// turns, and a small call uses few of them: `zeros` has at least as many bytes as the largest
  /// call.
  result<void> wipe(void* zeros, size_t bytes, nccl_stream on);

 private:
  template <class Call>
  result<void> enqueue(nccl_call what, size_t bytes, Call&& call);
  result<void> exchange(float* zeros, size_t count, nccl_stream on);

  const std::shared_ptr<nccl_session> session_;
  const nccl_session::group group_;
  const uint32_t rank_, size_;
  struct {
    size_t bytes_max = 0;
    bool ring = false;  // anything but messages
    std::set<uint32_t> sent_to, received_from;
  } used_;
};

}  // namespace lethe
