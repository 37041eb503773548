#include "tests/cuda/emulated_device.hpp"

#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/cuda/guarded.hpp"

namespace lethe::emulated {
namespace {

size_t whole(size_t bytes) { return (bytes + 255) / 256 * 256; }

/// By memcmp, which is not slow under sanitizers, either: pieces have megabytes.
bool zeros(const std::byte* at, size_t bytes) {
  return bytes == 0 || (at[0] == std::byte{0} && std::memcmp(at, at + 1, bytes - 1) == 0);
}

}  // namespace

device_error queue_on(device_stream stream, std::function<device_error()> call) {
  return machine::of(stream).put(std::move(call));
}

device::~device() {
  if (!blocks_.empty() || !graphs_.empty()) std::abort();
}

std::byte* device::allocate(memory_kind kind, size_t bytes) {
  const size_t own = kind == memory_kind::device ? bytes : 0;
  if (empty_ || own > room_ - counts_.device_bytes) return nullptr;
  ++counts_.allocations;
  counts_.device_bytes += own;
  auto* at = static_cast<std::byte*>(take(whole(bytes)));
  std::memset(at, 0xff, bytes);
  blocks_[at] = bytes;
  return at;
}

void device::free(memory_kind kind, std::byte* at, size_t bytes) {
  if (!queued_.empty() || blocks_.at(at) != bytes) std::abort();
  if (kind == memory_kind::device) counts_.device_bytes -= bytes;
  if (!zeros(at, bytes)) left_full_.push_back(bytes);
  blocks_.erase(at);
  give(at, whole(bytes));
}

bool device::knows(const void* at, size_t bytes) const {
  auto* begin = static_cast<const std::byte*>(at);
  auto after = blocks_.upper_bound(begin);
  if (after == blocks_.begin()) return false;
  --after;
  return begin + bytes <= after->first + after->second;
}

device_error device::put(std::function<device_error()> call) {
  (recorded_ ? *recorded_ : queued_).push_back(std::move(call));
  return 0;
}

device_error device::copy(void* to, const void* from, size_t bytes) {
  ++counts_.copies;
  return copy_stretches(to, from, bytes, bytes, 1);
}

device_error device::copy_stretches(void* to, const void* from, size_t pitch, size_t bytes,
                                    size_t count) {
  size_t all = pitch * (count - 1) + bytes;
  if (count == 0 || bytes > pitch || !knows(to, all) || !knows(from, all)) return invalid_value;
  return put([=] {
    for (size_t i = 0; i < count; ++i)
      emulated::copy(static_cast<std::byte*>(to) + i * pitch,
                     static_cast<const std::byte*>(from) + i * pitch, bytes);
    return 0;
  });
}

device_error device::begin_graph() {
  if (recorded_) return invalid_value;
  recorded_ = std::make_unique<calls>();
  machine_.defer(recorded_.get());
  return 0;
}

device_error device::end_graph(device_graph& made) {
  if (!recorded_) return invalid_value;
  made = reinterpret_cast<device_graph>(recorded_.get());
  counts_.graph_nodes += recorded_->size();
  graphs_[made] = std::move(recorded_);
  machine_.defer(&queued_);
  return 0;
}

device_error device::queue(device_graph graph) {
  auto known = graphs_.find(graph);
  if (known == graphs_.end()) return invalid_value;
  put([this] { return ++counts_.graphs_run, 0; });
  for (const auto& call : *known->second) put(call);
  return 0;
}

void device::free(device_graph graph) {
  if (!queued_.empty()) std::abort();
  graphs_.erase(graph);
}

/// As far as it gets.
device_error device::run_queued() {
  size_t ran = 0;
  device_error e = broken_ ? launch_failed : 0;
  for (; e == 0 && ran < queued_.size(); ++ran)
    if ((e = queued_[ran]()) != 0) break;
  if (e != 0 && e != not_ready) ran = queued_.size();
  queued_.erase(queued_.begin(), queued_.begin() + std::ptrdiff_t(ran));
  return e;
}

device_error device::finish() {
  if (recorded_) return invalid_value;
  ++counts_.waits;
  device_error e;
  while ((e = run_queued()) == not_ready)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return e;
}

device_error device::ask(bool& done) {
  if (recorded_) return invalid_value;
  bool any = !queued_.empty();
  device_error e = run_queued();
  done = e != not_ready;
  counts_.waits += any && done;
  return done ? e : 0;
}

}  // namespace lethe::emulated
