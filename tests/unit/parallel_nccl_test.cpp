#include "tests/unit/nccl_ranks.hpp"

#include <barrier>

// What groups of GPUs do while nothing fails.

namespace lethe::testing {
namespace {

using floats = std::vector<float>;

const std::vector<cut> grids{{1, 1}, {2, 1}, {1, 3}, {2, 2}, {3, 2}};

floats of_rank(uint32_t rank, size_t count) {
  floats x(count);
  for (size_t i = 0; i < count; ++i) x[i] = float((rank + 1) * 100 + i % 50);
  return x;
}

floats sum_of(uint32_t ranks, size_t count) {
  floats sum(count);
  for (uint32_t r = 0; r < ranks; ++r)
    for (size_t i = 0; i < count; ++i) sum[i] += of_rank(r, count)[i];
  return sum;
}

uint16_t bf16(float x) { return uint16_t(std::bit_cast<uint32_t>(x) >> 16); }

TEST(Nccl, FormsTheGroupsOfAGrid) {
  for (cut grid : grids) {
    nccl_ranks n(grid);
    n.join();
    n.all([&](uint32_t r, nccl_world& w) {
      EXPECT_EQ(w.world().rank(), r);
      EXPECT_EQ(w.world().size(), n.size());
      ASSERT_EQ(w.tensor() != nullptr, grid.tensor > 1);
      ASSERT_EQ(w.pipeline() != nullptr, grid.pipeline > 1);
      auto place = [](nccl_communicator* g) {
        return g ? std::pair(g->rank(), g->size()) : std::pair(0u, 1u);
      };
      EXPECT_EQ(place(w.tensor()), std::pair(r % grid.tensor, grid.tensor));
      EXPECT_EQ(place(w.pipeline()), std::pair(r / grid.tensor, grid.pipeline));
    });
    n.close();
    n.expect_clean();
  }
}

TEST(Nccl, AddsUpOverTheRanksOfAStage) {
  for (cut grid : grids)
    for (uint32_t questions : {0, 3}) {
      if (grid.tensor == 1) continue;
      nccl_ranks n(grid, {.questions = questions});
      n.join();
      n.all([&](uint32_t r, nccl_world& w) {
        fake_stream s;
        floats x = of_rank(r % grid.tensor, 1000), y(1000);
        auto done = w.tensor()->all_reduce(x.data(), y.data(), x.size(), element::f32, &s);
        EXPECT_TRUE(finish(w, s, done));
        EXPECT_EQ(y, sum_of(grid.tensor, 1000));
        done = w.tensor()->all_reduce(x.data(), x.data(), x.size(), element::f32, &s);
        EXPECT_TRUE(finish(w, s, done));
        EXPECT_EQ(x, y);
      });
      n.close();
      n.expect_clean();
    }
}

TEST(Nccl, AddsUpBfloat16) {
  nccl_ranks n({2, 1});
  n.join();
  n.all([&](uint32_t r, nccl_world& w) {
    fake_stream s;
    std::vector<uint16_t> x(8, bf16(float(r + 1)));
    EXPECT_TRUE(finish(w, s, w.tensor()->all_reduce(x.data(), x.data(), 8, element::bf16, &s)));
    EXPECT_EQ(x, std::vector<uint16_t>(8, bf16(3)));
  });
  n.close();
  n.expect_clean();
}

TEST(Nccl, GathersAndScattersEqualParts) {
  nccl_ranks n({3, 1}, {.questions = 1});
  n.join();
  n.all([&](uint32_t r, nccl_world& w) {
    fake_stream s;
    floats mine = of_rank(r, 40), all(120), want;
    EXPECT_TRUE(
        finish(w, s, w.tensor()->all_gather(mine.data(), all.data(), 40, element::f32, &s)));
    for (uint32_t o = 0; o < 3; ++o)
      for (float x : of_rank(o, 40)) want.push_back(x);
    EXPECT_EQ(all, want);
    floats whole = of_rank(r, 120), part(40), sum = sum_of(3, 120);
    EXPECT_TRUE(
        finish(w, s, w.tensor()->reduce_scatter(whole.data(), part.data(), 40, element::f32, &s)));
    EXPECT_EQ(part, floats(sum.begin() + 40 * r, sum.begin() + 40 * r + 40));
  });
  n.close();
  n.expect_clean();
}

TEST(Nccl, BroadcastsFromAnyRoot) {
  nccl_ranks n({2, 2});
  n.join();
  n.all([&](uint32_t r, nccl_world& w) {
    fake_stream s;
    for (uint32_t root = 0; root < 4; ++root) {
      floats x = of_rank(r, 10);
      EXPECT_TRUE(finish(w, s, w.world().broadcast(x.data(), 10, element::f32, root, &s)));
      EXPECT_EQ(x, of_rank(root, 10));
    }
  });
  n.close();
  n.expect_clean();
}

/// A step as a pipeline has it: each stage adds up what it made, and hands it on.
TEST(Nccl, CarriesARowThroughAllStagesOnOneStream) {
  for (uint32_t questions : {0, 2}) {
    nccl_ranks n({2, 3}, {.questions = questions});
    n.join();
    n.all([&](uint32_t, nccl_world& w) {
      fake_stream s;
      uint32_t stage = w.pipeline()->rank();
      for (int step = 0; step < 20; ++step) {
        floats row(64, float(step));
        nccl_communicator &t = *w.tensor(), &p = *w.pipeline();
        result<void> done;
        if (stage > 0) done = p.recv(row.data(), 64, element::f32, stage - 1, &s);
        if (done) done = t.all_reduce(row.data(), row.data(), 64, element::f32, &s);
        if (done && stage < 2) done = p.send(row.data(), 64, element::f32, stage + 1, &s);
        ASSERT_TRUE(done);
        ASSERT_TRUE(w.wait([&s] { return s.idle(); }));
        EXPECT_EQ(row, floats(64, float(step) * float(2 << stage)));
      }
    });
    n.close();
    n.expect_clean();
  }
}

TEST(Nccl, OnlyEnqueues) {
  nccl_ranks n({2, 1});
  n.join();
  floats x[2] = {floats(8, 1), floats(8, 2)};
  fake_stream s[2];
  fake_nccl::be(0);
  EXPECT_TRUE(n.worlds[0]->tensor()->all_reduce(x[0].data(), x[0].data(), 8, element::f32, &s[0]));
  EXPECT_FALSE(s[0].idle());
  fake_nccl::be(1);
  EXPECT_TRUE(n.worlds[1]->tensor()->all_reduce(x[1].data(), x[1].data(), 8, element::f32, &s[1]));
  EXPECT_TRUE(s[0].idle());
  EXPECT_EQ(x[0], floats(8, 3));
  n.close();
  n.expect_clean();
}

TEST(Nccl, RegistersMemoryWithEveryGroup) {
  nccl_ranks n({2, 2}, {.questions = 2});
  n.join();
  n.all([&](uint32_t r, nccl_world& w) {
    auto m = w.allocate(10'000);
    ASSERT_TRUE(m) << m.why().text;
    EXPECT_EQ(m->bytes, 12'288u);
    EXPECT_TRUE(m->registered);
    auto* x = static_cast<float*>(m->at);
    std::ranges::copy(of_rank(r % 2, 100), x);
    fake_stream s;
    EXPECT_TRUE(finish(w, s, w.tensor()->all_reduce(x, x, 100, element::f32, &s)));
    EXPECT_EQ(floats(x, x + 100), sum_of(2, 100));
  });
  EXPECT_EQ(n.fake.registrations(), 4u * 3);
  n.close();
  n.expect_clean();
}

/// Also where it is one rank only whose device can't.
TEST(Nccl, RegistersNothingWhereARankCannot) {
  for (int without : {-1, 2}) {
    nccl_ranks n({2, 2}, {.windows = without >= 0, .without_window = without});
    n.join();
    n.all([&](uint32_t, nccl_world& w) {
      auto m = w.allocate(4096);
      ASSERT_TRUE(m);
      EXPECT_FALSE(m->registered);
      EXPECT_EQ(m->why_not, "NCCL registers no memory between these devices");
      EXPECT_NE(m->at, nullptr);
    });
    EXPECT_EQ(n.fake.registrations(), without < 0 ? 0u : 3u * 3);
    n.close();
    n.expect_clean();
  }
}

TEST(Nccl, EndsWhereRanksWantMemoryOfDifferentSize) {
  nccl_ranks n({2, 1});
  n.join();
  n.all([&](uint32_t r, nccl_world& w) {
    EXPECT_FALSE(w.allocate(r == 0 ? 4096 : 8192));
    EXPECT_FALSE(w.close());
  });
  n.expect_clean();
}

TEST(Nccl, RefusesRanksThatAreNotThere) {
  using call = std::function<result<void>(nccl_communicator&, float*, fake_stream*)>;
  for (const call& c :
       {call([](auto&g, float*x, auto*s) { return g.broadcast(x, 1, element::f32, 2, s); }),
        call([](auto&g, float*x, auto*s) { return g.send(x, 1, element::f32, g.rank(), s); }),
        call([](auto&g, float*x, auto*s) { return g.recv(x, 1, element::f32, 7, s); })}) {
    nccl_ranks n({2, 1});
    n.join();
    n.all([&](uint32_t, nccl_world& w) {
      float x = 0;
      fake_stream s;
      EXPECT_FALSE(c(*w.tensor(), &x, &s));
      EXPECT_FALSE(w.close());
    });
    n.expect_clean();
  }
}

TEST(Nccl, JoinsNoControlOfAnotherSizeOrRank) {
  fake_nccl fake;
  for (auto [rank, tensor] : {std::pair(0u, 3u), std::pair(1u, 2u)}) {
    auto ends = make_gloo_group(2);
    nccl_config c{.rank = rank, .ranks = {tensor, 1}};
    auto joined = nccl_world::join(c, fake_nccl::table(), std::move(ends[0]));
    ASSERT_FALSE(joined);
    EXPECT_NE(joined.why().text.find("does not fit tensor"), std::string::npos);
  }
  EXPECT_EQ(fake.left(), (fake_nccl::rest{0, 0, 0}));
}

std::vector<std::byte> canary() {
  std::vector<std::byte> c(24);
  for (size_t i = 0; i < c.size(); ++i) c[i] = std::byte(0xa0 + i);
  return c;
}

/// What ranks say with the canary in it, by ways of every kind.
void speak(nccl_world& w, std::vector<std::byte>& data, fake_stream& s) {
  size_t n = data.size() / 4;
  ASSERT_TRUE(w.tensor()->broadcast(data.data(), n, element::f32, 0, &s));
  if (w.pipeline()->rank() == 0) {
    ASSERT_TRUE(w.pipeline()->send(data.data(), n, element::f32, 1, &s));
  } else {
    ASSERT_TRUE(w.pipeline()->recv(data.data(), n, element::f32, 0, &s));
  }
  ASSERT_TRUE(w.wait([&s] { return s.idle(); }));
}

/// One small call, and many larger ones: they end anywhere in NCCL's buffers.
TEST(Nccl, FillsBuffersOfNcclsOwnWithZeros) {
  for (size_t bytes : {64, 700, 6000})
    for (size_t zeros_bytes : {6000, 20'000}) {
      nccl_ranks n({2, 2});
      n.join();
      auto say = [&](uint32_t, nccl_world& w) {
        std::vector<std::byte> data(bytes);
        std::ranges::copy(canary(), data.begin() + 16);
        fake_stream s;
        speak(w, data, s);
      };
      n.all(say);
      EXPECT_TRUE(n.fake.holds(canary()));
      for (int turn = 0; turn < 2; ++turn) {
        n.all(say);
        n.all([&](uint32_t, nccl_world& w) {
          std::vector<float> zeros(zeros_bytes / 4);
          fake_stream s;
          ASSERT_TRUE(w.tensor()->wipe(zeros.data(), zeros_bytes, &s));
          ASSERT_TRUE(w.pipeline()->wipe(zeros.data(), zeros_bytes, &s));
          ASSERT_TRUE(w.world().wipe(zeros.data(), zeros_bytes, &s));
          ASSERT_TRUE(w.wait([&s] { return s.idle(); }));
        });
        EXPECT_FALSE(n.fake.holds(canary())) << bytes << " bytes, zeros " << zeros_bytes;
      }
      n.close();
      n.expect_clean();
    }
}

/// Also after a wipe: a graph may make that call again.
TEST(Nccl, RefusesToWipeWithFewerZerosThanTheLargestCall) {
  nccl_ranks n({2, 1});
  n.join();
  std::barrier both(2);
  n.all([&](uint32_t, nccl_world& w) {
    floats x(100);
    fake_stream s;
    EXPECT_TRUE(finish(w, s, w.tensor()->all_reduce(x.data(), x.data(), 100, element::f32, &s)));
    EXPECT_TRUE(finish(w, s, w.tensor()->wipe(x.data(), 400, &s)));
    both.arrive_and_wait();  // what follows ends it for both
    EXPECT_FALSE(w.tensor()->wipe(x.data(), 396, &s));
    EXPECT_FALSE(w.close());
  });
  n.expect_clean();
}

}  // namespace
}  // namespace lethe::testing
