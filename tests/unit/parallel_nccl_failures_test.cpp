#include "tests/unit/nccl_ranks.hpp"

// Whatever call fails or hangs on one rank: all ranks end, say why, and leave nothing behind.

namespace lethe::testing {
namespace {

using namespace std::chrono_literals;
using kind = nccl_fault::kind;

constexpr cut grid{2, 2};
constexpr uint32_t ranks = 4;
constexpr auto late = 400ms;

/// All that a rank does in its life, up to what fails.
result<void> live(nccl_world& w) {
  auto memory = w.allocate(8192);
  if (!memory) return memory.why();
  auto* x = static_cast<float*>(memory->at);
  std::fill_n(x, 64, 1.F);
  fake_stream s;
  nccl_communicator &t = *w.tensor(), &p = *w.pipeline();
  bool first = p.rank() == 0;
  const std::vector<std::function<result<void>()>> steps{
      [&] { return t.all_reduce(x, x, 16, element::f32, &s); },
      [&] { return t.all_gather(x, x + 32, 8, element::f32, &s); },
      [&] { return t.reduce_scatter(x, x + 32, 8, element::f32, &s); },
      [&] { return t.broadcast(x, 16, element::f32, 1, &s); },
      [&] { return first ? p.send(x, 8, element::f32, 1, &s) : result<void>(); },
      [&] { return first ? result<void>() : p.recv(x, 8, element::f32, 0, &s); },
  };
  for (const auto& step : steps)
    if (auto done = finish(w, s, step()); !done) return done;
  return w.close();
}

/// Ranks that live until the end, in the worlds of an epoch.
struct lives : nccl_ranks {
  explicit lives(fake_nccl::options o = {}) : nccl_ranks(grid, o) {}

  void run() {
    connect();
    whys.assign(ranks, "");
    for (uint32_t r = 0; r < ranks; ++r) threads.emplace_back([this, r] { run_one(r); });
  }
  void run_one(uint32_t r) {
    join_one(r);
    if (!worlds[r]) return;
    if (auto lived = live(*worlds[r]); !lived) whys[r] = lived.why().text;
    worlds[r].reset();
  }
  /// Of all, but one that may be stuck until it is let go.
  void wait(std::optional<uint32_t> but = {}) {
    for (uint32_t r = 0; r < threads.size(); ++r)
      if (r != but) threads[r].join();
    if (but) {
      wait_until_stuck();
      fake.let_go();
      threads[*but].join();
    }
    threads.clear();
  }
  void wait_until_stuck() {
    for (int i = 0; i < 20'000; ++i, std::this_thread::sleep_for(1ms))
      if (std::lock_guard lock(mutex); !stuck.empty()) return;
  }
  /// A new epoch is as good as the first.
  void expect_another_epoch() {
    run();
    wait();
    for (uint32_t r = 0; r < ranks; ++r) EXPECT_EQ(whys[r], "") << "rank " << r;
    expect_clean();
  }
  std::vector<std::thread> threads;
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(NcclFailures, AreNotThereWithoutAFault) {
  for (uint32_t questions : {0, 1, 5}) {
    lives n({.questions = questions});
    for (int epochs = 0; epochs < 3; ++epochs) n.expect_another_epoch();
    EXPECT_TRUE(n.stuck.empty());
  }
}

struct place {
  nccl_call call;
  uint32_t rank;
  const char* name;
  const char* others_wait_in = name;  // if it never ends
};

std::ostream& operator<<(std::ostream& to, const place& p) { return to << p.name; }

/// A life's calls, each on a rank that makes it. NCCL goes on with these behind their caller.
constexpr place begun[] = {
    {nccl_call::init, 1, "ncclCommInitRankConfig", "ncclCommSplit"},
    {nccl_call::split, 2, "ncclCommSplit"},
    {nccl_call::window_register, 3, "ncclCommWindowRegister"},
    {nccl_call::all_reduce, 1, "ncclAllReduce"},
    {nccl_call::all_gather, 0, "ncclAllGather"},
    {nccl_call::reduce_scatter, 3, "ncclReduceScatter"},
    {nccl_call::broadcast, 2, "ncclBroadcast"},
    {nccl_call::send, 1, "ncclSend"},
    {nccl_call::recv, 2, "ncclRecv"},
    {nccl_call::window_deregister, 0, "ncclCommWindowDeregister", "ncclCommFinalize"},
    {nccl_call::finalize, 3, "ncclCommFinalize"},
};
constexpr place done_at_once[] = {
    {nccl_call::get_unique_id, 0, "ncclGetUniqueId"},
    {nccl_call::destroy, 1, "ncclCommDestroy"},
};

struct NcclFault : ::testing::TestWithParam<place> {};
struct NcclFaultBehind : ::testing::TestWithParam<place> {};
std::string name_of_test(const ::testing::TestParamInfo<place>& p) { return p.param.name; }
INSTANTIATE_TEST_SUITE_P(Begun, NcclFault, ::testing::ValuesIn(begun), name_of_test);
INSTANTIATE_TEST_SUITE_P(AtOnce, NcclFault, ::testing::ValuesIn(done_at_once), name_of_test);
INSTANTIATE_TEST_SUITE_P(Begun, NcclFaultBehind, ::testing::ValuesIn(begun), name_of_test);

void expect_told_by_all(place p, nccl_fault fault, uint32_t questions) {
  lives n({.questions = questions});
  n.fake.inject(fault);
  n.run();
  n.wait();
  std::string why = fmt::format(
      "NCCL failed on rank {} in {}: a system call failed; see its network, shared memory and "
      "limits",
      p.rank, p.name);
  for (uint32_t r = 0; r < ranks; ++r) {
    EXPECT_TRUE(n.whys[r].starts_with("communicator: ")) << n.whys[r];
    EXPECT_TRUE(n.whys[r].ends_with(why)) << "rank " << r << ": " << n.whys[r];
  }
  EXPECT_EQ(n.whys[p.rank], "communicator: " + why);
  EXPECT_TRUE(n.fake.all_faults_happened());
  EXPECT_TRUE(n.stuck.empty());
  n.expect_clean();
  n.expect_another_epoch();
}

/// Of a call that is made several times also the second: other groups are there by then.
TEST_P(NcclFault, OfOneRankIsToldByAll) {
  place p = GetParam();
  bool often = name_of(p.call).starts_with("ncclComm") && p.call != nccl_call::init;
  for (uint32_t after : {0, 1})
    if (after == 0 || often)
      expect_told_by_all(p, {.rank = p.rank, .call = p.call, .what = kind::refused, .after = after},
                         after * 2);
}

TEST_P(NcclFaultBehind, ItsCallerIsToldByAll) {
  place p = GetParam();
  for (uint32_t questions : {0, 2})
    expect_told_by_all(p, {.rank = p.rank, .call = p.call, .what = kind::fails}, questions);
}

/// Who gives up first says so; that may be a rank that waits for the one that hangs.
TEST_P(NcclFaultBehind, ThatIsNoneEndsEveryRankInTime) {
  place p = GetParam();
  lives n;
  n.timeout = late;
  n.fake.inject({p.rank, p.call, kind::never_ends});
  auto begin = std::chrono::steady_clock::now();
  n.run();
  n.wait();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, late);
  for (uint32_t r = 0; r < ranks; ++r) {
    EXPECT_TRUE(has(n.whys[r], "NCCL did not end ")) << "rank " << r << ": " << n.whys[r];
    EXPECT_TRUE(has(n.whys[r], p.name) || has(n.whys[r], p.others_wait_in) ||
                has(n.whys[r], "what was under way"))
        << n.whys[r];
    EXPECT_TRUE(has(n.whys[r], " within 400 ms; see whether every rank's process and GPU run"));
  }
  EXPECT_TRUE(n.fake.all_faults_happened());
  EXPECT_TRUE(n.stuck.empty());
  n.expect_clean();
  n.timeout = 20s;
  n.expect_another_epoch();
}

/// The rank is lost, and told so; the others are not.
TEST_P(NcclFault, ThatKeepsItsThreadEndsTheOthersInTime) {
  place p = GetParam();
  lives n;
  n.timeout = late;
  n.fake.inject({p.rank, p.call, kind::never_returns});
  n.run();
  n.wait(p.rank);
  for (uint32_t r = 0; r < ranks; ++r)
    EXPECT_TRUE(has(n.whys[r], "NCCL did not end ")) << n.whys[r];
  ASSERT_EQ(n.stuck.size(), 1u);
  EXPECT_EQ(n.stuck[0],
            fmt::format("communicator: NCCL does not come back from {} on rank {}; end this "
                        "process",
                        p.name, p.rank));
  // Its memory NCCL may still use.
  bool has_memory = p.call >= nccl_call::window_register;
  n.expect_clean(has_memory ? 1 : 0);
}

TEST(NcclFailures, OfMemoryEndNothingButTheCall) {
  lives n;
  n.fake.inject({2, nccl_call::mem_alloc, kind::refused});
  n.join();
  n.all([](uint32_t, nccl_world& w) {
    auto none = w.allocate(8192);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.why().text,
              "communicator: rank 2's GPU has no 8192 bytes left; lower pages or step tokens");
    EXPECT_TRUE(w.allocate(4096));
  });
  EXPECT_EQ(n.fake.left().pieces_of_memory, size_t{ranks});
  n.close();
  n.expect_clean();
}

/// An abort that hangs keeps the memory, and says that the process must end.
TEST(NcclFailures, OfAnAbortAreToldOnce) {
  for (kind what : {kind::refused, kind::never_returns}) {
    lives n;
    n.timeout = late;
    n.fake.inject({1, nccl_call::all_reduce, kind::refused});
    n.fake.inject({1, nccl_call::abort, what});
    n.run();
    n.wait();
    ASSERT_EQ(n.stuck.size(), 1u);
    EXPECT_EQ(n.stuck[0],
              "communicator: NCCL does not come back from ncclCommAbort on rank 1; end this "
              "process");
    for (uint32_t r = 0; r < ranks; ++r)
      EXPECT_TRUE(has(n.whys[r], "NCCL failed on rank 1 in ncclAllReduce")) << n.whys[r];
    n.fake.let_go();
    n.expect_clean(1);
  }
}

/// While NCCL does not come back from an abort, nobody waits for it.
TEST(NcclFailures, LetCallsFailAtOnceDuringAnAbort) {
  lives n;
  n.join();
  n.fake.inject({1, nccl_call::abort, kind::never_returns});
  n.worlds[1]->abort();
  while (!n.fake.all_faults_happened()) std::this_thread::sleep_for(1ms);
  float x = 0;
  fake_stream s;
  EXPECT_FALSE(n.worlds[1]->world().all_reduce(&x, &x, 1, element::f32, &s));
  EXPECT_FALSE(n.worlds[1]->health());
  n.fake.let_go();
  n.worlds.clear();
  n.expect_clean();
}

/// Its process is gone: NCCL says so on every other rank, and the links, too.
TEST(NcclFailures, OfALostRankAreToldByTheOthers) {
  lives n;
  n.join();
  n.fake.lose(3);
  for (uint32_t r = 0; r < 3; ++r) {
    while (n.worlds[r]->health()) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(has(n.worlds[r]->health().why().text,
                    "another rank or the network is gone; see the other ranks"));
    float x = 0;
    fake_stream s;
    EXPECT_FALSE(n.worlds[r]->world().all_reduce(&x, &x, 1, element::f32, &s));
  }
  n.worlds.clear();
  n.expect_clean();
}

/// What a device did while NCCL failed is not what was asked for, even if nobody has looked yet.
TEST(NcclFailures, AreSeenByWhoeverWaitsForADevice) {
  lives n;
  n.beat = 1h;
  n.join();
  n.fake.lose(3);
  for (uint32_t r = 0; r < 3; ++r) {
    auto done = n.worlds[r]->wait([] { return true; });
    ASSERT_FALSE(done);
    EXPECT_TRUE(has(done.why().text, "another rank or the network is gone")) << done.why().text;
  }
  n.worlds.clear();
  n.expect_clean();
}

/// Nobody calls anything: ranks hear of an end all the same.
TEST(NcclFailures, AreHeardByIdleRanks) {
  lives n;
  n.join();
  n.worlds[2]->abort();
  for (uint32_t r = 0; r < ranks; ++r) {
    while (n.worlds[r]->health()) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(has(n.worlds[r]->health().why().text, "rank 2 aborted the group"));
  }
  n.worlds.clear();
  n.expect_clean();
}

/// From another thread, at any time of a life.
TEST(NcclFailures, OfAnAbortAtAnyTimeLeaveNothing) {
  for (int turn = 0; turn < 40; ++turn) {
    lives n({.questions = uint32_t(turn % 3)});
    n.connect();
    std::atomic<uint32_t> joined = 0;
    std::atomic<bool> leave = false;
    for (uint32_t r = 0; r < ranks; ++r)
      n.threads.emplace_back([&n, &joined, &leave, r] {
        n.join_one(r);
        ++joined;
        auto lived = n.worlds[r] ? live(*n.worlds[r]) : result<void>();
        while (!leave) std::this_thread::yield();
      });
    while (joined != ranks) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(turn * 100));
    if (n.worlds[1]) n.worlds[1]->abort();
    leave = true;
    n.wait();
    n.worlds.clear();
    n.expect_clean();
  }
}

/// A device that does not go on, while NCCL sees nothing wrong.
TEST(NcclFailures, OfADeviceEndEveryRankInTime) {
  lives n;
  n.timeout = late;
  n.join();
  n.all([](uint32_t r, nccl_world& w) {
    float x = 0;
    fake_stream s;
    auto posted = r == 3 ? result<void>() : w.world().all_reduce(&x, &x, 1, element::f32, &s);
    EXPECT_TRUE(posted);
    auto done = w.wait([&s, r] { return r != 3 && s.idle(); });
    ASSERT_FALSE(done);
    EXPECT_TRUE(has(done.why().text, "NCCL did not end what was under way on rank ")) << r;
    EXPECT_TRUE(s.idle());
  });
  n.worlds.clear();
  n.expect_clean();
}

/// A kernel of one group waits on the device behind one of another: both are aborted as one.
TEST(NcclFailures, EndKernelsOfAllGroupsTogether) {
  lives n;
  n.join();
  std::vector<fake_stream> s(ranks);
  float x[ranks] = {};
  for (uint32_t r : {0, 1, 2}) {
    fake_nccl::be(r);
    nccl_communicator &tensor = *n.worlds[r]->tensor(), &world = n.worlds[r]->world();
    EXPECT_TRUE(r == 1 || tensor.all_reduce(&x[r], &x[r], 1, element::f32, &s[r]));
    EXPECT_TRUE(world.all_reduce(&x[r], &x[r], 1, element::f32, &s[r]));
  }
  n.worlds[0]->abort();
  n.worlds.clear();
  for (auto& each : s) EXPECT_TRUE(each.idle());
  n.expect_clean();
}

TEST(NcclFailures, OfARankThatStaysEndTheOthersInTime) {
  lives n;
  n.patience_at_end = late;
  n.join();
  on_all(3, [&](uint32_t r) {
    auto closed = n.worlds[r]->close();
    ASSERT_FALSE(closed);
    EXPECT_TRUE(has(closed.why().text, "rank 3 did not answer within 400 ms")) << closed.why().text;
  });
  while (n.worlds[3]->health()) std::this_thread::sleep_for(1ms);
  n.worlds.clear();
  n.expect_clean();
}

/// A split that comes to be just before its world is aborted has made a group all the same.
TEST(NcclFailures, LeaveNoGroupThatWasBeingSplitOff) {
  lives n({.questions = 1000});
  n.timeout = late;
  n.run();
  n.wait();
  for (uint32_t r = 0; r < ranks; ++r)
    EXPECT_TRUE(has(n.whys[r], "NCCL did not end ")) << n.whys[r];
  n.expect_clean();
}

TEST(NcclFailures, KeepAnOldEpochOutOfANewOne) {
  lives n;
  n.timeout = late;
  n.connect();
  auto old = std::move(n.controls[1]);
  n.connect();
  n.controls[1] = std::move(old);
  on_all(ranks, [&](uint32_t r) { n.join_one(r); });
  for (uint32_t r = 0; r < ranks; ++r) {
    EXPECT_EQ(n.worlds[r], nullptr);
    EXPECT_NE(n.whys[r], "");
  }
  n.expect_clean();
}

}  // namespace
}  // namespace lethe::testing
