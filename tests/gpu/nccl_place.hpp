#pragma once

#include <cstring>
#include <memory>
#include <stdexcept>

#include "parallel/accelerator.hpp"
#include "parallel/nccl_world.hpp"
#include "tests/gpu/process_state.hpp"

namespace lethe::testing {

/// Where a world of one rank lives: a device, the kernels for it, and NCCL or what stands for it.
struct nccl_place {
  accelerator& on;
  const cuda_row& row;
  nccl_functions library;
  nccl_pins pins;
  process_state before;                        // the library was loaded
  std::chrono::milliseconds patience{10'000};  // with threads that end

  /// Groups of an epoch, formed as an engine's rank forms its own.
  result<std::unique_ptr<nccl_world>> join() const;
};

inline void must(const result<void>& done) {
  if (!done) throw std::runtime_error(done.why().text);
}
template <class T>
T must(result<T> made) {
  if (!made) throw std::runtime_error(made.why().text);
  return *std::move(made);
}
inline void must(device_error e) {
  if (e != 0) throw std::runtime_error("CUDA error " + std::to_string(e));
}

/// What was queued, waited for.
inline void finish(nccl_world& w, accelerator& on) {
  must(w.wait([&on] {
    bool done = false;
    return on.ask(done) != 0 || done;
  }));
}

/// Values on a device, wiped when they go.
template <class T>
class values_on {
 public:
  values_on(const nccl_place& p, size_t count, T each = {})
      : place_(p),
        count_(count),
        there_(p.on, memory_kind::device, whole(count * sizeof(T))),
        here_(p.on, memory_kind::pinned, whole(count * sizeof(T))) {
    if (there_.data() == nullptr || here_.data() == nullptr)
      throw std::runtime_error("no memory for " + std::to_string(count) + " values");
    std::memset(here_.data(), 0, here_.size());
    write(std::vector<T>(count, each));
  }
  ~values_on() {
    (void)wipe();
    (void)place_.on.finish();
    std::memset(here_.data(), 0, here_.size());
  }

  T* data() { return reinterpret_cast<T*>(there_.data()); }
  size_t count() const { return count_; }
  void write(const std::vector<T>& values) {
    std::memcpy(here_.data(), values.data(), count_ * sizeof(T));
    must(place_.on.copy(there_.data(), here_.data(), here_.size()));
    must(place_.on.finish());
  }
  std::vector<T> read() {
    must(place_.on.copy(here_.data(), there_.data(), here_.size()));
    must(place_.on.finish());
    std::vector<T> values(count_);
    std::memcpy(values.data(), here_.data(), count_ * sizeof(T));
    return values;
  }
  device_error wipe() { return place_.row.wipe(there_.data(), there_.size(), place_.on.stream()); }

 private:
  /// What a wipe wipes.
  static size_t whole(size_t bytes) { return (bytes + 15) / 16 * 16; }

  const nccl_place& place_;
  const size_t count_;
  const device_memory there_, here_;
};

/// What is queued by `calls` as a graph, which can be queued again.
class graph_on {
 public:
  template <class Calls>
  graph_on(accelerator& on, Calls&& calls) : on_(on) {
    must(on_.begin_graph());
    calls();
    must(on_.end_graph(made_));
  }
  graph_on(const graph_on&) = delete;
  ~graph_on() { on_.free(made_); }
  void queue() { must(on_.queue(made_)); }

 private:
  accelerator& on_;
  device_graph made_ = nullptr;
};

}  // namespace lethe::testing
