#include "parallel/gloo_transport.hpp"

#include <gloo/common/error.h>
#include <gloo/transport/buffer.h>

#include <algorithm>

// Gloo's interface reports by exceptions; whoever calls Gloo catches them.

namespace lethe {
namespace {

void must(const result<void>& done) {
  if (!done) throw gloo::IoException(done.why().text);
}

[[noreturn]] void no_bound_buffers() {
  throw gloo::InvalidOperationException("our links have no bound buffers");
}

}  // namespace

size_t link_buffer::length(size_t offset, size_t bytes) const {
  check(offset <= size);
  size_t rest = size - offset;
  check(bytes == kUnspecifiedByteCount || bytes <= rest);
  return std::min(bytes, rest);
}

deadline link_buffer::until(std::chrono::milliseconds timeout) const {
  if (timeout == gloo::transport::kUnsetTimeout) return mesh_.call_deadline();
  return std::chrono::steady_clock::now() + timeout;
}

void link_buffer::send(int rank, uint64_t slot, size_t offset, size_t bytes) {
  to_ = rank;
  mesh_.send(uint32_t(rank), lane_, slot,
             {static_cast<const std::byte*>(ptr) + offset, length(offset, bytes)});
}

void link_buffer::recv(int rank, uint64_t slot, size_t offset, size_t bytes) {
  from_ = rank;
  mesh_.receive(uint32_t(rank), lane_, slot,
                {static_cast<std::byte*>(ptr) + offset, length(offset, bytes)});
}

void link_buffer::recv(std::vector<int> ranks, uint64_t slot, size_t offset, size_t bytes) {
  if (ranks.size() != 1)
    throw gloo::InvalidOperationException("our links receive from one named rank");
  recv(ranks[0], slot, offset, bytes);
}

bool link_buffer::waitRecv(int* rank, std::chrono::milliseconds timeout) {
  must(mesh_.wait_received(uint32_t(from_), lane_, until(timeout)));
  if (rank != nullptr) *rank = from_;
  return true;
}

bool link_buffer::waitSend(int* rank, std::chrono::milliseconds timeout) {
  must(mesh_.wait_sent(uint32_t(to_), lane_, until(timeout)));
  if (rank != nullptr) *rank = to_;
  return true;
}

link_pair::link_pair(link_device& device, lane on, uint32_t rank)
    : device_(device), lane_(on), rank_(rank), address_(device.door().address()) {}

/// The higher rank calls the lower.
void link_pair::connect(const std::vector<char>& bytes) {
  mesh& m = device_.over();
  if (rank_ > m.rank()) return must(device_.door().await(m, rank_, lane_, device_.formed()));
  auto at = link_address::read(std::as_bytes(std::span(bytes)));
  if (!at) must(at.why());
  must(device_.door().call(m, rank_, lane_, *at, device_.formed()));
}

std::unique_ptr<gloo::transport::Buffer> link_pair::createSendBuffer(int, void*, size_t) {
  no_bound_buffers();
}
std::unique_ptr<gloo::transport::Buffer> link_pair::createRecvBuffer(int, void*, size_t) {
  no_bound_buffers();
}

void link_pair::send(gloo::transport::UnboundBuffer* from, uint64_t slot, size_t offset,
                     size_t bytes) {
  from->send(int(rank_), slot, offset, bytes);
}

void link_pair::recv(gloo::transport::UnboundBuffer* to, uint64_t slot, size_t offset,
                     size_t bytes) {
  to->recv(int(rank_), slot, offset, bytes);
}

std::unique_ptr<gloo::transport::Pair>& link_context::createPair(int rank) {
  return pairs_[size_t(rank)] = std::make_unique<link_pair>(device_, lane_, uint32_t(rank));
}

std::unique_ptr<gloo::transport::UnboundBuffer> link_context::createUnboundBuffer(void* at,
                                                                                  size_t bytes) {
  return std::make_unique<link_buffer>(device_.over(), lane_, at, bytes);
}

std::shared_ptr<gloo::transport::Context> link_device::createContext(int rank, int size) {
  check(lanes_made_ < lanes);
  return std::make_shared<link_context>(*this, lane(lanes_made_++), rank, size);
}

}  // namespace lethe
