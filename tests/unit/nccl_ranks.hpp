#pragma once

#include <gtest/gtest.h>

#include "parallel/nccl_world.hpp"
#include "tests/unit/nccl_closed.hpp"
#include "tests/unit/nccl_fake.hpp"
#include "tests/unit/parallel_gloo_group.hpp"

// Ranks of a replica, as threads of the test, on a library that stands for NCCL.

namespace lethe::testing {

struct nccl_ranks {
  explicit nccl_ranks(cut grid, fake_nccl::options o = {})
      : shape(grid), pins(closed_environment(o.staging)), fake(o), worlds(size()), whys(size()) {}

  uint32_t size() const { return shape.tensor * shape.pipeline; }

  nccl_config config(uint32_t rank) {
    return {.rank = rank,
            .ranks = shape,
            .forming = timeout,
            .timeout = timeout,
            .beat = beat,
            .pins = pins,
            .fate = fates[rank],
            .stuck = [this](const error& why) {
              std::lock_guard lock(mutex);
              stuck.push_back(why.text);
            }};
  }

  /// Links for telling ends, of a new epoch.
  void connect() {
    ++epoch;
    fates.clear();
    for (uint32_t r = 0; r < size(); ++r) fates.push_back(std::make_shared<group_fate>());
    controls = gloo_group_of(size(), [this](uint32_t r) {
      gloo_config c = gloo_rank(r, size());
      c.epoch = epoch;
      c.group = "ends";
      c.timeout = patience_at_end;
      c.fate = fates[r];
      return c;
    });
  }

  void join_one(uint32_t r) {
    fake_nccl::be(r);
    auto joined = nccl_world::join(config(r), fake_nccl::table(), std::move(controls[r]));
    if (joined)
      worlds[r] = *std::move(joined);
    else
      whys[r] = joined.why().text;
  }

  /// What every rank does, each in a thread.
  void all(const std::function<void(uint32_t, nccl_world&)>& body) {
    on_all(size(), [&](uint32_t r) {
      fake_nccl::be(r);
      body(r, *worlds[r]);
    });
  }

  void join() {
    connect();
    on_all(size(), [this](uint32_t r) { join_one(r); });
    for (uint32_t r = 0; r < size(); ++r) ASSERT_EQ(whys[r], "") << "rank " << r;
  }

  void close() {
    all([](uint32_t, nccl_world& w) {
      auto closed = w.close();
      EXPECT_TRUE(closed) << closed.why().text;
    });
    for (auto& w : worlds) w.reset();
  }

  /// Nothing that NCCL forbids was done, and nothing is left but `pieces` of memory.
  void expect_clean(size_t pieces = 0) {
    for (const std::string& what : fake.misuses()) ADD_FAILURE() << what;
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (fake.left() != fake_nccl::rest{0, 0, pieces} && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    auto [communicators, windows, memory] = fake.left();
    EXPECT_EQ(communicators, 0u);
    EXPECT_EQ(windows, 0u);
    EXPECT_EQ(memory, pieces);
  }

  const cut shape;
  const nccl_pins pins;
  std::chrono::milliseconds timeout{20'000};
  std::chrono::milliseconds beat{1};
  std::chrono::milliseconds patience_at_end{30'000};  // until all ranks leave
  uint64_t epoch = 0;
  std::mutex mutex;
  std::vector<std::string> stuck;
  fake_nccl fake;
  std::vector<std::shared_ptr<group_fate>> fates;
  std::vector<std::unique_ptr<gloo_communicator>> controls;
  std::vector<std::unique_ptr<nccl_world>> worlds;
  std::vector<std::string> whys;
};

/// One call, waited for.
inline result<void> finish(nccl_world& w, fake_stream& s, const result<void>& enqueued) {
  auto done = w.wait([&s, ok = bool(enqueued)] { return !ok || s.idle(); });
  return enqueued ? done : enqueued;
}

}  // namespace lethe::testing
