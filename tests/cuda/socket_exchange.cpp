#include "tests/cuda/socket_exchange.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>

#include "kernels/cuda/simt.hpp"
#include "runtime/base/wipe.hpp"
#include "tests/cuda/emulated_device.hpp"

namespace lethe::emulated {
namespace {

constexpr int moment_ms = 1;

size_t bytes_of(const nccl_work& w) { return w.count * (w.type == nccl_type::float32 ? 4 : 2); }

bool adds(const nccl_work& w) {
  return w.what == nccl_call::all_reduce || w.what == nccl_call::reduce_scatter;
}

/// Of what a rank has, what is another's.
const std::byte* part_of(const nccl_work& w, int rank) {
  bool scattered = w.what == nccl_call::reduce_scatter;
  return static_cast<const std::byte*>(w.from) + (scattered ? size_t(rank) * bytes_of(w) : 0);
}

template <class T, class Load, class Store>
void add(const nccl_work& w, const std::byte* parts, Load load, Store store) {
  auto at = [&](int r, size_t i) {
    T x;
    std::memcpy(&x, parts + (size_t(r) * w.count + i) * sizeof x, sizeof x);
    return load(x);
  };
  for (size_t i = 0; i < w.count; ++i) {
    float sum = at(0, i);
    for (int r = 1; r < w.group->size(); ++r) sum += at(r, i);
    T x = store(sum);
    std::memcpy(static_cast<std::byte*>(w.to) + i * sizeof x, &x, sizeof x);
  }
}

void add(const nccl_work& w, const std::byte* parts) {
  auto same = [](float x) { return x; };
  if (w.type == nccl_type::float32) return add<float>(w, parts, same, same);
  add<uint16_t>(w, parts, lethe::device::from_bf16, lethe::device::to_bf16);
}

}  // namespace

void socket_exchange::give(const nccl_work& w, int rank, const void* from, size_t bytes) {
  auto* at = static_cast<std::byte*>(const_cast<void*>(from));  // which is only read
  out_.push_back({w.group.get(), rank, {w.what, w.type, bytes}, at});
}

void socket_exchange::get(const nccl_work& w, int rank, void* to, size_t bytes) {
  nccl_call theirs = w.what == nccl_call::recv ? nccl_call::send : w.what;
  in_.push_back({w.group.get(), rank, {theirs, w.type, bytes}, static_cast<std::byte*>(to)});
}

void socket_exchange::plan(const nccl_work& w, std::vector<std::byte>& parts) {
  const size_t bytes = bytes_of(w);
  const int own = w.group->rank();
  if (w.what == nccl_call::send) return give(w, w.other, w.from, bytes);
  if (w.what == nccl_call::recv) return get(w, w.other, w.to, bytes);
  if (w.what == nccl_call::broadcast && w.other != own) return get(w, w.other, w.to, bytes);
  if (adds(w)) parts.resize(size_t(w.group->size()) * bytes);
  auto* into = adds(w) ? parts.data() : static_cast<std::byte*>(w.to);
  for (int r = 0; r < w.group->size(); ++r) {
    if (r == own) continue;
    give(w, r, part_of(w, r), bytes);
    if (w.what != nccl_call::broadcast) get(w, r, into + size_t(r) * bytes, bytes);
  }
}

void socket_exchange::begin() {
  begun_ = true;
  parts_.resize(works_.size());
  for (size_t i = 0; i < works_.size(); ++i) plan(works_[i], parts_[i]);
}

/// What a rank has itself goes where the others' parts went.
void socket_exchange::complete() {
  for (size_t i = 0; i < works_.size(); ++i) {
    const nccl_work& w = works_[i];
    if (w.count == 0 || w.what == nccl_call::send || w.what == nccl_call::recv) continue;
    const int own = w.group->rank();
    if (w.what == nccl_call::broadcast) {
      if (w.other == own) std::memmove(w.to, w.from, bytes_of(w));
      continue;
    }
    auto* into = adds(w) ? parts_[i].data() : static_cast<std::byte*>(w.to);
    std::memmove(into + size_t(own) * bytes_of(w), part_of(w, own), bytes_of(w));
    if (adds(w)) add(w, parts_[i].data());
  }
  drop();
}

void socket_exchange::drop() {
  for (auto& p : parts_) wipe(p.data(), p.size());
  parts_.clear();
  out_.clear();
  in_.clear();
  begun_ = false;
}

/// As far as the socket goes; false if it is the end of that.
bool socket_exchange::move_some(transfer& t, bool out) {
  size_t head = std::min(t.moved, sizeof(frame)), bytes = t.moved - head;
  auto* frame_at = reinterpret_cast<std::byte*>(out ? &t.head : &t.came);
  iovec rest[2] = {{frame_at + head, sizeof(frame) - head}, {t.at + bytes, t.head.bytes - bytes}};
  msghdr m{};
  m.msg_iov = rest;
  m.msg_iovlen = 2;
  ssize_t n = out ? sendmsg(t.fd(), &m, MSG_NOSIGNAL) : recvmsg(t.fd(), &m, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n <= 0) return t.group->fail(nccl_status::remote_error), false;
  t.moved += size_t(n);
  if (!out && t.moved >= sizeof(frame) && t.came != t.head)
    return t.group->fail(nccl_status::invalid_usage), false;
  return true;
}

/// Between two ranks nothing overtakes what comes before it.
void socket_exchange::move(transfers& all, bool out) {
  std::set<int> held_up;
  for (transfer& t : all) {
    while (!t.done() && !held_up.contains(t.fd()))
      if (!move_some(t, out)) held_up.insert(t.fd());
    if (failed()) return;
  }
}

bool socket_exchange::moved() const {
  return std::ranges::all_of(out_, &transfer::done) && std::ranges::all_of(in_, &transfer::done);
}

bool socket_exchange::ended() const {
  return std::ranges::any_of(works_, [](const nccl_work& w) { return w.group->ended(); });
}

bool socket_exchange::failed() const {
  return std::ranges::any_of(
      works_, [](const nccl_work& w) { return w.group->state() != nccl_status::success; });
}

void socket_exchange::wait() const {
  std::vector<pollfd> all;
  for (const transfer& t : in_)
    if (!t.done()) all.push_back({t.fd(), POLLIN, 0});
  for (const transfer& t : out_)
    if (!t.done()) all.push_back({t.fd(), POLLOUT, 0});
  poll(all.data(), all.size(), moment_ms);
}

device_error socket_exchange::go_on() {
  std::set<std::mutex*> mutexes;
  for (const nccl_work& w : works_) mutexes.insert(&w.group->exchanging());
  std::vector<std::unique_lock<std::mutex>> held;
  for (std::mutex* m : mutexes) held.emplace_back(*m);
  if (ended()) return drop(), 0;
  if (failed()) {
    held.clear();
    std::this_thread::sleep_for(std::chrono::milliseconds(moment_ms));
    return not_ready;
  }
  if (!begun_) begin();
  move(out_, true);
  move(in_, false);
  if (!failed() && moved()) return complete(), 0;
  wait();
  return not_ready;
}

}  // namespace lethe::emulated
