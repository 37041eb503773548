#include <sched.h>

#include <random>

#include "runtime/base/wipe.hpp"
#include "tests/unit/memory_search.hpp"
#include "tests/unit/nccl_rank_processes.hpp"

// How groups over sockets form and end between processes: killed, stopped, aborted, different.

namespace lethe::testing {
namespace {

using namespace std::chrono_literals;

constexpr nccl_type f32 = nccl_type::float32;
constexpr auto patient = 10min;  // for what is not to happen

nccl_status add_up(const socket_rank& r, void* data, size_t count, device_stream on) {
  return r.library.all_reduce(data, data, count, f32, nccl_reduction::sum, r.comm, on);
}
nccl_status add_up(socket_rank& r, void* data, size_t count) {
  return add_up(r, data, count, r.device.stream());
}

bool there(const nccl_id& id) { return std::filesystem::exists(id.bytes); }

/// A process in a group until it is killed.
process rank_process(int own, int size, const nccl_id& id) {
  return process([=] {
    socket_rank r(own, size, id);
    pause();
  });
}

TEST(NcclSocketsEnds, LeaveNoFileOnceAllRanksHaveCome) {
  for (int size : {1, 2, 4}) {
    nccl_id id = new_id();
    on_all(uint32_t(size), [&](uint32_t own) {
      socket_rank r(int(own), size, id);
      EXPECT_EQ(r.said, nccl_status::success);
      EXPECT_EQ(r.leave(), nccl_status::success);
    });
    EXPECT_FALSE(there(id));
  }
}

/// As rank 0, which does not wait for the others.
nccl_status begin_group(nccl_comm& comm, int size, const nccl_id& id) {
  nccl_setup setup;
  setup.blocking = 0;
  return nccl_over_sockets().init(&comm, size, id, 0, &setup);
}

/// Also what a rank has left there that was killed meanwhile.
TEST(NcclSocketsEnds, LeaveNoFileIfARankNeverComes) {
  nccl_id id = new_id();
  process killed = rank_process(1, 4, id);
  const nccl_functions& f = nccl_over_sockets();
  nccl_comm comm;
  EXPECT_EQ(begin_group(comm, 4, id), nccl_status::in_progress);
  while (!std::filesystem::exists(std::string(id.bytes) + "/1")) std::this_thread::yield();
  killed.signal(SIGKILL);
  EXPECT_FALSE(killed.ended());
  EXPECT_TRUE(there(id));
  EXPECT_EQ(f.abort(comm), nccl_status::success);
  EXPECT_FALSE(there(id));
}

TEST(NcclSocketsEnds, TellOfARankThatDiesWhileTheGroupForms) {
  nccl_id id = new_id();
  process killed = rank_process(1, 3, id);
  const nccl_functions& f = nccl_over_sockets();
  nccl_comm comm;
  size_t before = open_descriptors();
  nccl_status state = begin_group(comm, 3, id);
  // A listener, and two of who has called, which may have been at once.
  while (open_descriptors() < before + 3) f.async_error(comm, &state);
  EXPECT_EQ(state, nccl_status::in_progress);
  killed.signal(SIGKILL);
  while (state == nccl_status::in_progress) f.async_error(comm, &state);
  EXPECT_EQ(state, nccl_status::remote_error);
  f.abort(comm);
  EXPECT_FALSE(there(id));
}

/// The device is at it until the group is aborted, as one with NCCL's kernel.
TEST(NcclSocketsEnds, TellOfARankThatIsKilled) {
  nccl_id id = new_id();
  process killed = rank_process(1, 2, id);
  socket_rank r(0, 2, id);
  float x = 1;
  ASSERT_EQ(add_up(r, &x, 1), nccl_status::success);
  std::atomic<bool> done = false;
  device_error said = -1;
  std::thread device([&] {
    said = r.device.finish();
    done = true;
  });
  killed.signal(SIGKILL);
  EXPECT_EQ(r.failure(), nccl_status::remote_error);
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(done);
  r.abort();
  device.join();
  EXPECT_EQ(said, 0);
}

TEST(NcclSocketsEnds, WaitForARankThatIsStoppedUntilTheyAreAborted) {
  nccl_id id = new_id();
  process stopped = rank_process(1, 2, id);
  socket_rank r(0, 2, id);
  stopped.signal(SIGSTOP);
  std::vector<float> x(1'000'000, 1);
  ASSERT_EQ(add_up(r, x.data(), x.size()), nccl_status::success);
  std::thread device([&] { EXPECT_EQ(r.device.finish(), 0); });
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(r.state(), nccl_status::success);
  r.abort();
  device.join();
}

/// Neither what the device is at, nor what it is given afterwards; and a graph holds no socket.
TEST(NcclSocketsEnds, DoNothingOnceAborted) {
  nccl_id id = new_id();
  size_t before = open_descriptors();
  std::atomic<bool> noticed = false;
  on_all(2, [&](uint32_t own) {
    socket_rank r(int(own), 2, id);
    float x = 1, y = 0;
    device_graph graph;
    r.device.begin_graph();
    ASSERT_EQ(r.library.all_reduce(&x, &y, 1, f32, nccl_reduction::sum, r.comm, r.device.stream()),
              nccl_status::success);
    r.device.end_graph(graph);
    r.device.queue(graph);
    ASSERT_EQ(r.device.finish(), 0);
    EXPECT_EQ(std::exchange(y, 0), 2);
    r.device.queue(graph);
    if (own == 1) {
      EXPECT_EQ(r.failure(), nccl_status::remote_error);
      EXPECT_EQ(add_up(r, &x, 1), nccl_status::remote_error);
      noticed = true;
    } else {
      EXPECT_FALSE(idle(r.device));
    }
    r.abort();
    EXPECT_EQ(r.device.finish(), 0);
    r.device.queue(graph);
    EXPECT_EQ(r.device.finish(), 0);
    EXPECT_EQ(y, 0);
    while (!noticed) std::this_thread::yield();
    r.device.free(graph);
  });
  EXPECT_EQ(open_descriptors(), before);
}

/// All of a world's, whichever the device is at.
TEST(NcclSocketsEnds, AreAbortedWhileTheDeviceIsAtThem) {
  socket_worlds worlds({2, 2});
  worlds.timeout = patient;
  worlds.live([](uint32_t own, nccl_world& w, emulated::device& d) {
    float x = 1;
    if (own != 0) return (void)w.wait([] { return false; });
    ASSERT_TRUE(w.pipeline()->all_reduce(&x, &x, 1, element::f32, d.stream()));
    ASSERT_TRUE(w.tensor()->all_reduce(&x, &x, 1, element::f32, d.stream()));
    std::thread other([&w] {
      std::this_thread::sleep_for(20ms);
      w.abort();
    });
    EXPECT_EQ(d.finish(), 0);
    other.join();
    EXPECT_FALSE(w.wait([] { return false; }));
  });
}

TEST(NcclSocketsEnds, TellOfRanksThatDiffer) {
  for (int difference : {0, 1, 2}) {
    nccl_id id = new_id();
    on_all(2, [&](uint32_t own) {
      socket_rank r(int(own), 2, id);
      std::vector<float> x(64), all(128);
      size_t count = own == 1 && difference == 0 ? 63 : 64;
      auto type = own == 1 && difference == 1 ? nccl_type::bfloat16 : f32;
      nccl_status said =
          own == 1 && difference == 2
              ? r.library.all_gather(x.data(), all.data(), count, type, r.comm, r.device.stream())
              : r.library.all_reduce(x.data(), x.data(), count, type, nccl_reduction::sum, r.comm,
                                     r.device.stream());
      ASSERT_EQ(said, nccl_status::success);
      while (r.state() == nccl_status::success) EXPECT_FALSE(idle(r.device));
      nccl_status why = r.state();
      EXPECT_TRUE(why == nccl_status::invalid_usage || why == nccl_status::remote_error);
      r.abort();
      EXPECT_EQ(r.device.finish(), 0);
    });
  }
}

TEST(NcclSocketsEnds, RefuseWhatNcclWould) {
  nccl_id id = new_id();
  on_all(2, [&](uint32_t own) {
    socket_rank r(int(own), 2, id);
    const nccl_functions& f = r.library;
    float x = 0;
    void* s = r.device.stream();
    auto bad = nccl_status::invalid_argument;
    EXPECT_EQ(f.send(&x, 1, f32, int(own), r.comm, s), bad);
    EXPECT_EQ(f.recv(&x, 1, f32, 2, r.comm, s), bad);
    EXPECT_EQ(f.broadcast(&x, &x, 1, f32, -1, r.comm, s), bad);
    EXPECT_EQ(f.all_gather(&x, &x, 1, nccl_type(3), r.comm, s), bad);
    f.group_start();
    f.send(&x, 1, f32, 5, r.comm, s);
    f.recv(&x, 1, f32, int(1 - own), r.comm, s);
    EXPECT_EQ(f.group_end(), bad);
    EXPECT_TRUE(idle(r.device));
    EXPECT_EQ(f.destroy(r.comm), nccl_status::invalid_usage);
    EXPECT_EQ(r.leave(), nccl_status::success);
  });
  nccl_setup setup;
  nccl_comm comm;
  nccl_id elsewhere{"/etc/lethe"};
  EXPECT_EQ(nccl_over_sockets().init(&comm, 2, id, 0, &setup), nccl_status::invalid_argument);
  setup.blocking = 0;
  EXPECT_EQ(nccl_over_sockets().init(&comm, 2, elsewhere, 0, &setup),
            nccl_status::invalid_argument);
}

/// Whoever leaves is no loss, however late the others are.
TEST(NcclSocketsEnds, LeaveTogether) {
  nccl_id id = new_id();
  on_all(3, [&](uint32_t own) {
    socket_rank r(int(own), 3, id);
    EXPECT_EQ(r.said, nccl_status::success);
    std::this_thread::sleep_for(own * 20ms);
    EXPECT_EQ(r.leave(), nccl_status::success);
  });
}

TEST(NcclSocketsEnds, JoinProcessesOfTwoNetworkNamespaces) {
  nccl_id id = new_id();
  constexpr int no_namespace = 77;
  auto add = [&id](int own) {
    socket_rank r(own, 2, id);
    float x = float(own + 1);
    bool good = add_up(r, &x, 1) == nccl_status::success && r.device.finish() == 0 && x == 3;
    return good && r.leave() == nccl_status::success;
  };
  int probe[2];
  ASSERT_EQ(pipe(probe), 0);
  process other([&] {
    bool apart = unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
    if (write(probe[1], &apart, 1) != 1) _exit(1);
    if (!apart) _exit(no_namespace);
    if (!add(1)) _exit(1);
  });
  bool apart = false;
  ASSERT_EQ(read(probe[0], &apart, 1), 1);
  for (int fd : probe) close(fd);
  if (!apart) GTEST_SKIP() << "no network namespace can be made here";
  EXPECT_TRUE(add(0));
  EXPECT_TRUE(other.ended());
}

/// Floats that occur nowhere else.
struct marked {
  marked() : floats(3000) {
    std::mt19937 random(29);
    for (float& x : floats) x = 1 + std::ldexp(float(random() % 8'000'000), -23);
  }
  ~marked() { wipe(floats.data(), floats.size() * 4); }
  std::vector<float> floats;
};

test::needle mark(size_t at) {
  marked m;
  return test::needle(std::as_bytes(std::span(m.floats).subspan(at, 8)));
}

/// What another process gave to be added is in the sum alone; also if the group ends in the middle.
TEST(NcclSocketsEnds, LeaveNothingOfWhatOthersGave) {
#ifdef LETHE_SANITIZED
  GTEST_SKIP() << "a sanitizer keeps what was freed";
#endif
  nccl_id id = new_id();
  process other([&id] {
    socket_rank r(1, 2, id);
    {
      marked m;
      add_up(r, m.floats.data(), m.floats.size());
      r.device.finish();
    }
    marked m;
    add_up(r, m.floats.data(), m.floats.size());
    (void)idle(r.device);
    pause();
  });
  socket_rank r(0, 2, id);
  std::vector<float> x(3000, 1), y(3000, 1), z(1);
  ASSERT_EQ(add_up(r, x.data(), x.size()), nccl_status::success);
  ASSERT_EQ(r.device.finish(), 0);
  EXPECT_EQ(x[5], marked().floats[5] + 1);
  r.library.group_start();  // whose second call the other never makes
  add_up(r, y.data(), y.size());
  add_up(r, z.data(), 1);
  r.library.group_end();
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(idle(r.device));
  EXPECT_GT(test::count_everywhere(mark(10)), 0u);
  r.abort();
  EXPECT_EQ(r.device.finish(), 0);
  for (size_t at : {10, 1500, 2900}) EXPECT_EQ(test::count_everywhere(mark(at)), 0u);
}

// Worlds whose ranks are processes.

constexpr cut grid{2, 2};
constexpr uint32_t ranks = 4;

result<void> step(nccl_world& w, emulated::device& d) {
  std::vector<float> x(100, 1);
  auto done = w.tensor()->all_reduce(x.data(), x.data(), x.size(), element::f32, d.stream());
  if (done) done = w.pipeline()->all_reduce(x.data(), x.data(), 100, element::f32, d.stream());
  done = finish(w, d, done);
  return !done || x == std::vector<float>(100, 4) ? done : fail("wrong sum");
}

/// Steps until something fails, and then what that was.
std::string live(uint32_t own, folder_store& store, std::chrono::milliseconds timeout) {
  auto fate = std::make_shared<group_fate>();
  gloo_config g = gloo_rank(own, ranks);
  g.group = "ends";
  g.timeout = patient;
  g.fate = fate;
  auto control = gloo_communicator::join(std::move(g), store);
  if (!control) return "control: " + control.why().text;
  nccl_config c{.rank = own,
                .ranks = grid,
                .timeout = timeout,
                .pins = closed_environment({2, 64 << 10}),
                .fate = fate};
  auto w = nccl_world::join(c, nccl_over_sockets(), *std::move(control));
  if (!w) return "join: " + w.why().text;
  emulated::device device;
  result<void> done;
  for (int steps = 0; done; ++steps) {
    if (steps == 5) store.say("steps " + std::to_string(own), "");
    done = step(**w, device);
  }
  auto closed = (*w)->close();
  if (closed) return "closed well";
  device.finish();
  return done.why().text;
}

/// What all ranks but one say that lost it.
std::vector<std::string> lose(uint32_t lost, int signal, std::chrono::milliseconds timeout) {
  auto folder = temporary_folder::make("nccl");
  folder_store store((*folder).path());
  std::vector<process> all;
  for (uint32_t r = 0; r < ranks; ++r)
    all.emplace_back([&, r] {
      size_t before = open_descriptors();
      std::string said = live(r, store, timeout);
      if (open_descriptors() != before) said += ", and left sockets";
      store.say("end " + std::to_string(r), said);
    });
  for (uint32_t r = 0; r < ranks; ++r) (void)store.await("steps " + std::to_string(r));
  all[lost].signal(signal);
  std::vector<std::string> said;
  for (uint32_t r = 0; r < ranks; ++r) {
    if (r == lost) continue;
    said.push_back(store.await("end " + std::to_string(r)));
    EXPECT_TRUE(all[r].ended());
  }
  return said;
}

TEST(NcclSocketsProcesses, TellOfOneThatIsKilled) {
  for (uint32_t lost : {0, 3})
    for (const std::string& said : lose(lost, SIGKILL, patient)) {
      EXPECT_TRUE(said.starts_with("communicator: ")) << said;
      EXPECT_EQ(said.find("and left"), std::string::npos) << said;
    }
}

TEST(NcclSocketsProcesses, TellInTimeOfOneThatIsStopped) {
  for (const std::string& said : lose(2, SIGSTOP, 3s)) {
    EXPECT_TRUE(said.starts_with("communicator: ")) << said;
    EXPECT_EQ(said.find("and left"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace lethe::testing
