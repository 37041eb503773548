#pragma once

#include <dirent.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "parallel/nccl_world.hpp"
#include "tests/cuda/emulated_device.hpp"
#include "tests/cuda/nccl_over_sockets.hpp"
#include "tests/unit/nccl_closed.hpp"
#include "tests/unit/parallel_gloo_group.hpp"

// Ranks with an emulated device each, on the library over sockets: its own groups, and worlds.

namespace lethe::testing {

using emulated::nccl_over_sockets;

inline bool idle(accelerator& d) {
  bool done = false;
  return d.ask(done) != 0 || done;
}

/// What was queued, waited for.
inline result<void> finish(nccl_world& w, accelerator& d, const result<void>& enqueued) {
  if (!enqueued) return enqueued;
  return w.wait([&d] { return idle(d); });
}

inline size_t open_descriptors() {
  size_t count = 0;
  for (auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count += entry.exists();
  return count;
}

/// A rank of a group that is made of the table alone.
struct socket_rank {
  socket_rank(int own, int size, const nccl_id& id) {
    nccl_setup setup;
    setup.blocking = 0;
    said = library.init(&comm, size, id, own, &setup);
    settle();
  }
  socket_rank(const socket_rank&) = delete;
  ~socket_rank() { abort(); }

  void abort() {
    if (comm != nullptr) library.abort(std::exchange(comm, nullptr));
  }
  nccl_status state() const {
    nccl_status s;
    library.async_error(comm, &s);
    return s;
  }
  void settle() {
    for (; said == nccl_status::in_progress; said = state())
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  /// Until it says that something failed.
  nccl_status failure() const {
    nccl_status s = state();
    for (; s == nccl_status::success; s = state())
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    return s;
  }
  nccl_status leave() {
    said = library.finalize(comm);
    settle();
    return said == nccl_status::success ? library.destroy(std::exchange(comm, nullptr)) : said;
  }

  const nccl_functions& library = nccl_over_sockets();
  nccl_comm comm = nullptr;
  nccl_status said;
  emulated::device device;
};

inline nccl_id new_id() {
  nccl_id id;
  nccl_over_sockets().get_unique_id(&id);
  return id;
}

/// A world of ranks that are threads of the test, which leave nothing.
struct socket_worlds {
  explicit socket_worlds(cut grid) : shape(grid), size(grid.tensor * grid.pipeline) {}

  /// Joins, lives and leaves on a thread for each rank.
  void live(const std::function<void(uint32_t, nccl_world&, emulated::device&)>& body) {
    std::vector<std::shared_ptr<group_fate>> fates;
    for (uint32_t r = 0; r < size; ++r) fates.push_back(std::make_shared<group_fate>());
    ++epoch;
    auto controls = gloo_group_of(size, [&](uint32_t r) {
      gloo_config c = gloo_rank(r, size);
      c.epoch = epoch;
      c.group = "ends";
      c.fate = fates[r];
      return c;
    });
    on_all(size, [&](uint32_t r) {
      emulated::device device;
      nccl_config c{.rank = r, .ranks = shape, .timeout = timeout, .pins = pins, .fate = fates[r]};
      c.beat = std::chrono::milliseconds(2);
      auto w = nccl_world::join(c, nccl_over_sockets(), std::move(controls[r]));
      ASSERT_TRUE(w) << w.why().text;
      body(r, **w, device);
      (void)(*w)->close();
    });
  }

  const cut shape;
  const uint32_t size;
  const nccl_pins pins = closed_environment({2, 64 << 10});
  uint64_t epoch = 0;
  std::chrono::milliseconds timeout{20'000};
};

}  // namespace lethe::testing
