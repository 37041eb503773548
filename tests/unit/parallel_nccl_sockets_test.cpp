#include <bit>
#include <cstring>
#include <random>

#include "kernels/cuda/simt.hpp"
#include "tests/unit/nccl_socket_ranks.hpp"

// What stands for NCCL between processes, while nothing fails: its results against computed ones.

namespace lethe::testing {
namespace {

const std::vector<cut> grids{{2, 1}, {3, 1}, {4, 1}, {1, 2}, {1, 4}, {2, 2}};

/// Floats, or the bf16 that they round to.
struct buffer {
  buffer(element e, std::vector<float> x) : kind(e), floats(std::move(x)) {
    if (kind == element::bf16)
      for (float& f : floats) f = device::from_bf16(device::to_bf16(f));
  }
  /// As a device has it.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> b(floats.size() * (kind == element::f32 ? 4 : 2));
    for (size_t i = 0; i < floats.size(); ++i) {
      uint16_t half = device::to_bf16(floats[i]);
      if (kind == element::f32)
        std::memcpy(&b[4 * i], &floats[i], 4);
      else
        std::memcpy(&b[2 * i], &half, 2);
    }
    return b;
  }
  buffer part(size_t first, size_t count) const {
    auto at = floats.begin() + ptrdiff_t(first);
    return {kind, {at, at + ptrdiff_t(count)}};
  }
  element kind;
  std::vector<float> floats;
};

/// Values whose sum depends on the order of its terms.
buffer of_rank(uint32_t rank, size_t count, element e = element::f32, uint32_t seed = 1) {
  std::mt19937 random(seed * 1000 + rank);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(count);
  for (float& f : x) f = normal(random) * std::ldexp(1.F, int(random() % 12));
  return {e, x};
}

buffer sum_of(const std::vector<buffer>& all) {
  std::vector<float> sum = all[0].floats;
  for (size_t r = 1; r < all.size(); ++r)
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += all[r].floats[i];
  return {all[0].kind, sum};
}

buffer joined(const std::vector<buffer>& all) {
  std::vector<float> x;
  for (const buffer& b : all) x.insert(x.end(), b.floats.begin(), b.floats.end());
  return {all[0].kind, x};
}

/// A group of a rank, as the random calls below use it.
struct in_group {
  nccl_world& world;
  nccl_communicator& group;
  emulated::device& device;
  uint32_t size() const { return group.size(); }
  uint32_t rank() const { return group.rank(); }
  std::vector<buffer> all(size_t count, element e, uint32_t seed) const {
    std::vector<buffer> b;
    for (uint32_t r = 0; r < size(); ++r) b.push_back(of_rank(r, count, e, seed));
    return b;
  }
};

/// What one call must come to, and where it comes to.
struct expected {
  std::vector<std::byte> memory, want;
};

enum class kind { all_reduce, all_gather, reduce_scatter, broadcast, ring, kinds };

/// Enqueues one; sizes, root and values from `seed`, the same on all ranks.
result<void> enqueue(in_group& g, kind what, size_t n, element e, uint32_t seed, expected& x) {
  void* s = g.device.stream();
  const uint32_t own = g.rank(), size = g.size();
  auto all = g.all(what == kind::reduce_scatter ? n * size : n, e, seed);
  const size_t each = all[own].part(0, n).bytes().size();
  switch (what) {
    case kind::all_reduce:
      x = {all[own].bytes(), sum_of(all).bytes()};
      return g.group.all_reduce(x.memory.data(), x.memory.data(), n, e, s);
    case kind::all_gather:
      x = {std::vector<std::byte>(each * size), joined(all).bytes()};
      std::ranges::copy(all[own].bytes(), x.memory.data() + own * each);
      return g.group.all_gather(x.memory.data() + own * each, x.memory.data(), n, e, s);
    case kind::reduce_scatter: {
      x = {all[own].bytes(), all[own].bytes()};
      std::ranges::copy(sum_of(all).part(own * n, n).bytes(), x.want.data() + own * each);
      return g.group.reduce_scatter(x.memory.data(), x.memory.data() + own * each, n, e, s);
    }
    case kind::broadcast: {
      uint32_t root = seed % size;
      x = {all[own].bytes(), all[root].bytes()};
      return g.group.broadcast(x.memory.data(), n, e, root, s);
    }
    default: {  // from each rank to the next
      uint32_t next = (own + 1) % size, before = (own + size - 1) % size;
      x = {all[own].bytes(), all[before].bytes()};
      std::vector<std::byte>& m = x.memory;
      m.resize(2 * each);
      x.want.insert(x.want.begin(), m.begin(), m.begin() + ptrdiff_t(each));
      auto give = [&] { return g.group.send(m.data(), n, e, next, s); };
      auto get = [&] { return g.group.recv(m.data() + each, n, e, before, s); };
      auto first = own == 0 ? give() : get();
      return first ? own == 0 ? get() : give() : first;
    }
  }
}

void expect_result(in_group g, kind what, size_t n, element e, uint32_t seed) {
  expected x;
  auto done = finish(g.world, g.device, enqueue(g, what, n, e, seed, x));
  ASSERT_TRUE(done) << done.why().text;
  EXPECT_TRUE(x.memory == x.want) << "kind " << int(what) << " of " << n << " rank " << g.rank()
                                  << " of " << g.size() << " element " << int(e);
}

std::vector<nccl_communicator*> groups_of(nccl_world& w) {
  std::vector<nccl_communicator*> all{&w.world()};
  for (auto* g : {w.tensor(), w.pipeline()})
    if (g != nullptr && g != &w.world()) all.push_back(g);
  return all;
}

TEST(NcclSockets, GiveEveryCallsResultInEveryGroup) {
  for (cut grid : grids)
    socket_worlds(grid).live([](uint32_t, nccl_world& w, emulated::device& d) {
      for (nccl_communicator* g : groups_of(w))
        for (int what = 0; what < int(kind::kinds); ++what)
          for (element e : {element::f32, element::bf16})
            for (size_t n : {0, 1, 7, 1000}) expect_result({w, *g, d}, kind(what), n, e, 3);
    });
}

/// More than a socket holds: nobody waits to send before it receives.
TEST(NcclSockets, CarryWhatNoSocketHolds) {
  socket_worlds({4, 1}).live([](uint32_t, nccl_world& w, emulated::device& d) {
    for (int what = 0; what < int(kind::kinds); ++what)
      expect_result({w, w.world(), d}, kind(what), 150'000, element::f32, 5);
  });
}

/// Also of groups that share ranks, several on one stream before anybody waits.
TEST(NcclSockets, GiveTheResultsOfRandomSequences) {
  for (cut grid : {cut{2, 1}, {3, 1}, {4, 1}, {2, 2}})
    socket_worlds(grid).live([](uint32_t, nccl_world& w, emulated::device& d) {
      for (uint32_t sequence = 0; sequence < 50; ++sequence) {
        std::mt19937 random(sequence);
        std::deque<expected> all;
        for (uint32_t left = 1 + random() % 12; left-- != 0;) {
          auto groups = groups_of(w);
          in_group g{w, *groups[random() % groups.size()], d};
          auto what = kind(random() % uint32_t(kind::kinds));
          size_t n = random() % (random() % 4 == 0 ? 5000 : 20);
          element e = random() % 2 == 0 ? element::f32 : element::bf16;
          ASSERT_TRUE(enqueue(g, what, n, e, uint32_t(random()) % 100'000, all.emplace_back()));
          if (random() % 4 == 0) {
            ASSERT_TRUE(finish(w, d, {}));
          }
        }
        ASSERT_TRUE(finish(w, d, {}));
        for (const expected& x : all) ASSERT_TRUE(x.memory == x.want) << "sequence " << sequence;
      }
    });
}

TEST(NcclSockets, OnlyEnqueue) {
  socket_worlds({2, 1}).live([](uint32_t r, nccl_world& w, emulated::device& d) {
    std::vector<float> x(8, 1);
    ASSERT_TRUE(w.tensor()->all_reduce(x.data(), x.data(), 8, element::f32, d.stream()));
    EXPECT_EQ(x, std::vector<float>(8, 1));
    std::ranges::fill(x, float(r + 2));
    ASSERT_TRUE(finish(w, d, {}));
    EXPECT_EQ(x, std::vector<float>(8, 5));
  });
}

/// Two messages between each two ranks, in their order.
TEST(NcclSockets, SendBothWaysAtOnceWhereCallsAreGrouped) {
  nccl_id id = new_id();
  on_all(3, [&](uint32_t own) {
    socket_rank r(int(own), 3, id);
    const nccl_functions& f = r.library;
    constexpr size_t n = 300'000;
    std::vector<std::vector<float>> to(6, std::vector<float>(n)), from = to;
    f.group_start();
    for (uint32_t i = 0; i < 6; ++i) {
      int other = int(i % 3);
      if (other == int(own)) continue;
      std::ranges::fill(to[i], float(own * 10 + i));
      f.send(to[i].data(), n, nccl_type::float32, other, r.comm, r.device.stream());
      f.recv(from[i].data(), n, nccl_type::float32, other, r.comm, r.device.stream());
    }
    ASSERT_EQ(f.group_end(), nccl_status::success);
    ASSERT_EQ(r.device.finish(), 0);
    for (uint32_t i = 0; i < 6; ++i) {
      uint32_t other = i % 3;
      float want = float(other * 10 + own + i - other);
      if (other != own) {
        EXPECT_TRUE(from[i] == std::vector<float>(n, want)) << i;
      }
    }
    EXPECT_EQ(r.leave(), nccl_status::success);
  });
}

TEST(NcclSockets, KeepStreamsApartWhereCallsAreGrouped) {
  nccl_id id = new_id();
  on_all(2, [&](uint32_t own) {
    socket_rank r(int(own), 2, id);
    emulated::device second;
    const nccl_functions& f = r.library;
    float x = float(own + 1), y = 0;
    f.group_start();
    f.send(&x, 1, nccl_type::float32, int(1 - own), r.comm, r.device.stream());
    f.recv(&y, 1, nccl_type::float32, int(1 - own), r.comm, second.stream());
    ASSERT_EQ(f.group_end(), nccl_status::success);
    EXPECT_EQ(r.device.finish(), 0);
    EXPECT_EQ(y, 0);
    EXPECT_EQ(second.finish(), 0);
    EXPECT_EQ(y, float(2 - own));
    EXPECT_EQ(r.leave(), nccl_status::success);
  });
}

/// By color, and in it by key. Some ask for the next before others have the one before.
TEST(NcclSockets, SplitByColorAndKey) {
  nccl_id id = new_id();
  on_all(4, [&](uint32_t own) {
    socket_rank r(int(own), 4, id);
    const nccl_functions& f = r.library;
    nccl_setup setup;
    setup.blocking = 0;
    for (int turn = 0; turn < 3; ++turn) {
      nccl_comm part = nullptr;
      r.said = f.split(r.comm, int(own / 2), -int(own), &part, &setup);
      r.settle();
      ASSERT_EQ(r.said, nccl_status::success);
      float x = float(own), all[2] = {};
      f.all_gather(&x, all, 1, nccl_type::float32, part, r.device.stream());
      EXPECT_EQ(r.device.finish(), 0);
      float greater = float(own / 2 * 2 + 1);
      EXPECT_EQ(all[0], greater);
      EXPECT_EQ(all[1], greater - 1);
      std::swap(part, r.comm);
      EXPECT_EQ(r.leave(), nccl_status::success);
      r.comm = part;
    }
    EXPECT_EQ(r.leave(), nccl_status::success);
  });
}

/// Between the device's own work, and with what is in its memory by then.
TEST(NcclSockets, AreRecordedInGraphsAndReplayed) {
  socket_worlds({2, 2}).live([](uint32_t own, nccl_world& w, emulated::device& d) {
    constexpr size_t n = 100;
    {
      device_memory host(d, memory_kind::pinned, 4 * n), on(d, memory_kind::device, 4 * n);
      auto* x = reinterpret_cast<float*>(host.data());
      auto* y = reinterpret_cast<float*>(on.data());
      device_graph graph;
      d.begin_graph();
      d.copy(y, x, 4 * n);
      ASSERT_TRUE(w.tensor()->all_reduce(y, y, n, element::f32, d.stream()));
      ASSERT_TRUE(w.pipeline()->all_reduce(y, y, n, element::f32, d.stream()));
      d.copy(x, y, 4 * n);
      ASSERT_EQ(d.end_graph(graph), 0);
      EXPECT_TRUE(idle(d));
      for (uint32_t turn = 0; turn < 20; ++turn) {
        std::fill_n(x, n, float(own + turn));
        for (uint32_t times = 0; times <= turn % 3; ++times) d.queue(graph);
        ASSERT_TRUE(finish(w, d, {}));
        float want = 6 + 4 * float(turn);
        for (uint32_t times = 0; times < turn % 3; ++times) want *= 4;
        EXPECT_EQ(std::vector<float>(x, x + n), std::vector<float>(n, want)) << "turn " << turn;
      }
      d.free(graph);
    }
  });
}

/// A call that a rank asks about goes on when the others come, and holds up nobody until then.
TEST(NcclSockets, AreAskedWithoutWaiting) {
  nccl_id id = new_id();
  std::atomic<bool> asked = false;
  on_all(2, [&](uint32_t own) {
    socket_rank r(int(own), 2, id);
    float x = float(own + 1);
    while (own == 1 && !asked) std::this_thread::yield();
    r.library.all_reduce(&x, &x, 1, nccl_type::float32, nccl_reduction::sum, r.comm,
                         r.device.stream());
    bool done = true;
    if (own == 0) {
      EXPECT_EQ(r.device.ask(done), 0);
      EXPECT_FALSE(done);
      asked = true;
    }
    EXPECT_EQ(r.device.finish(), 0);
    EXPECT_EQ(x, 3);
    EXPECT_EQ(r.leave(), nccl_status::success);
  });
}

TEST(NcclSockets, WipeAlongEveryWay) {
  socket_worlds({2, 2}).live([](uint32_t, nccl_world& w, emulated::device& d) {
    std::vector<float> zeros(5000);
    for (int what = 0; what < int(kind::kinds); ++what)
      expect_result({w, *w.pipeline(), d}, kind(what), 100, element::f32, 5);
    ASSERT_TRUE(finish(w, d, w.pipeline()->wipe(zeros.data(), 20'000, d.stream())));
    EXPECT_EQ(zeros, std::vector<float>(5000));
  });
}

TEST(NcclSockets, GiveMemoryWithoutAWindow) {
  socket_worlds({2, 2}).live([](uint32_t, nccl_world& w, emulated::device&) {
    auto m = w.allocate(10'000);
    ASSERT_TRUE(m);
    EXPECT_FALSE(m->registered);
    EXPECT_EQ(m->bytes, 12'288u);
    EXPECT_TRUE(std::isnan(*static_cast<float*>(m->at)));
  });
}

TEST(NcclSockets, LeaveNothingAfterWorldsInARow) {
  size_t before = open_descriptors();
  socket_worlds worlds({2, 2});
  for (int epochs = 0; epochs < 3; ++epochs)
    worlds.live([](uint32_t, nccl_world& w, emulated::device& d) {
      expect_result({w, *w.tensor(), d}, kind::all_reduce, 10, element::f32, 5);
      auto closed = w.close();
      EXPECT_TRUE(closed) << closed.why().text;
    });
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace lethe::testing
