#include "parallel/nccl_communicator.hpp"

#include <algorithm>

namespace lethe {
namespace {

size_t bytes_of(element e) { return e == element::f32 ? 4 : 2; }

nccl_type type_of(element e) {
  return e == element::f32 ? nccl_type::float32 : nccl_type::bfloat16;
}

constexpr auto sum = nccl_reduction::sum;

}  // namespace

/// `bytes` pass through the group. `call` gets the table and the group.
template <class Call>
result<void> nccl_communicator::enqueue(nccl_call what, size_t bytes, Call&& call) {
  auto done = session_->run(what, group_,
                            [&] { return call(session_->library(), session_->comm(group_)); });
  used_.bytes_max = std::max(used_.bytes_max, bytes);
  return done;
}

result<void> nccl_communicator::all_reduce(const void* from, void* to, size_t count, element e,
                                           nccl_stream on) {
  used_.ring = true;
  return enqueue(nccl_call::all_reduce, count * bytes_of(e),
                 [=](const nccl_functions& f, nccl_comm c) {
                   return f.all_reduce(from, to, count, type_of(e), sum, c, on);
                 });
}

result<void> nccl_communicator::all_gather(const void* from, void* to, size_t count, element e,
                                           nccl_stream on) {
  used_.ring = true;
  return enqueue(nccl_call::all_gather, size_ * count * bytes_of(e),
                 [=](const nccl_functions& f, nccl_comm c) {
                   return f.all_gather(from, to, count, type_of(e), c, on);
                 });
}

result<void> nccl_communicator::reduce_scatter(const void* from, void* to, size_t count, element e,
                                               nccl_stream on) {
  used_.ring = true;
  return enqueue(nccl_call::reduce_scatter, size_ * count * bytes_of(e),
                 [=](const nccl_functions& f, nccl_comm c) {
                   return f.reduce_scatter(from, to, count, type_of(e), sum, c, on);
                 });
}

result<void> nccl_communicator::broadcast(void* data, size_t count, element e, uint32_t root,
                                          nccl_stream on) {
  if (root >= size_) return session_->refuse("broadcast: no such root");
  used_.ring = true;
  return enqueue(nccl_call::broadcast, count * bytes_of(e),
                 [=](const nccl_functions& f, nccl_comm c) {
                   return f.broadcast(data, data, count, type_of(e), int(root), c, on);
                 });
}

result<void> nccl_communicator::send(const void* from, size_t count, element e, uint32_t to,
                                     nccl_stream on) {
  if (to >= size_ || to == rank_) return session_->refuse("send: no such rank");
  used_.sent_to.insert(to);
  return enqueue(nccl_call::send, count * bytes_of(e), [=](const nccl_functions& f, nccl_comm c) {
    return f.send(from, count, type_of(e), int(to), c, on);
  });
}

result<void> nccl_communicator::recv(void* to, size_t count, element e, uint32_t from,
                                     nccl_stream on) {
  if (from >= size_ || from == rank_) return session_->refuse("recv: no such rank");
  used_.received_from.insert(from);
  return enqueue(nccl_call::recv, count * bytes_of(e), [=](const nccl_functions& f, nccl_comm c) {
    return f.recv(to, count, type_of(e), int(from), c, on);
  });
}

result<void> nccl_communicator::wipe(void* zeros, size_t bytes, nccl_stream on) {
  const size_t count = bytes / sizeof(float);
  if (used_.bytes_max > count * sizeof(float))
    return session_->refuse("wipe: there are fewer zeros than the largest call had data");
  const nccl_staging& s = session_->config().pins.staging;
  size_t left = used_.bytes_max == 0 ? 0 : s.channels * s.bytes;
  for (; left != 0; left -= std::min(left, count * sizeof(float))) {
    if (used_.ring)
      if (auto done = all_reduce(zeros, zeros, count, element::f32, on); !done) return done;
    if (auto done = exchange(static_cast<float*>(zeros), count, on); !done) return done;
  }
  return session_->health();
}

/// Zeros along every way that messages took, in one operation: no rank waits for another's order.
result<void> nccl_communicator::exchange(float* zeros, size_t count, nccl_stream on) {
  if (used_.sent_to.empty() && used_.received_from.empty()) return {};
  return enqueue(nccl_call::wipe, 0, [&](const nccl_functions& f, nccl_comm c) {
    nccl_status first = f.group_start();
    auto keep = [&first](nccl_status said) {
      if (first == nccl_status::success) first = said;
    };
    for (uint32_t r : used_.sent_to) keep(f.send(zeros, count, nccl_type::float32, int(r), c, on));
    for (uint32_t r : used_.received_from)
      keep(f.recv(zeros, count, nccl_type::float32, int(r), c, on));
    keep(f.group_end());
    return first;
  });
}

}  // namespace lethe
