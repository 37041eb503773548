#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "tests/cuda/emulated_device.hpp"
#include "tests/cuda/emulated_row.hpp"
#include "tests/cuda/nccl_over_sockets.hpp"
#include "tests/gpu/nccl_bench.hpp"
#include "tests/gpu/nccl_checks.hpp"
#include "tests/unit/nccl_ranks.hpp"

// The checks that tests/gpu/nccl makes of NCCL on a GPU, made of the libraries that stand for it,
// and of libraries that do one thing wrong: each is seen.

namespace lethe::testing {
namespace {

using namespace std::chrono_literals;
using emulated::nccl_over_sockets;

using outcome_map = std::map<std::string, std::string>;

outcome_map outcomes(const nccl_place& p) {
  outcome_map wrong;
  for (const nccl_check& c : nccl_checks())
    if (std::string said = outcome_of(c, p); !said.empty()) wrong[c.name] = said;
  return wrong;
}

/// What the checks say of a library, in a process whose environment is closed.
outcome_map outcomes_of(const nccl_functions& library, std::chrono::milliseconds patience = 10s) {
  emulated::device device;
  const nccl_pins pins = closed_environment({2, 4096});
  return outcomes({device, emulated_row, library, pins, process_state::now(), patience});
}

/// Does and notes as NCCL does, misuse included.
TEST(NcclAlone, IsRightOnALibraryThatNotesMisuse) {
  emulated::device device;
  fake_nccl fake;
  fake.serve(device.stream(), {.enqueue = [&](device_call c) { device.enqueue(std::move(c)); },
                               .capturing = [&] { return device.capturing(); }});
  const nccl_pins pins = closed_environment({2, 4096});
  auto wrong = outcomes({device, emulated_row, fake_nccl::table(), pins, process_state::now()});
  for (const auto& [name, said] : wrong) ADD_FAILURE() << name << ": " << said;
  for (const std::string& what : fake.misuses()) ADD_FAILURE() << what;
  EXPECT_EQ(fake.left(), (fake_nccl::rest{0, 0, 0}));
  EXPECT_EQ(fake.given_back_full(), 0u);
  EXPECT_TRUE(device.left_full().empty());
}

TEST(NcclAlone, IsRightOnALibraryOfSockets) {
  for (const auto& [name, said] : outcomes_of(nccl_over_sockets()))
    ADD_FAILURE() << name << ": " << said;
}

TEST(NcclAlone, IsTimedWhereTheAnswerIsRight) {
  emulated::device device;
  const nccl_pins pins = closed_environment({2, 4096});
  nccl_place place{device, emulated_row, nccl_over_sockets(), pins, process_state::now()};
  auto figures = bench_all_reduce(place, {4, 16'384}, 3, 5);
  ASSERT_EQ(figures.size(), 2u);
  for (const auto& f : figures) {
    EXPECT_GT(f.all_reduce.p10, 0);
    EXPECT_LE(f.all_reduce.p10, f.all_reduce.median);
    EXPECT_LE(f.copy.median, f.copy.p90);
    EXPECT_FALSE(f.registered);
  }
  place.library.all_reduce = [](const void*, void*, size_t, nccl_type, nccl_reduction, nccl_comm,
                                void*) { return nccl_status::success; };
  EXPECT_THROW(bench_all_reduce(place, {16}, 3, 5), std::runtime_error);
}

// Libraries that do one thing wrong.

nccl_status forgets_the_last(const void* from, void* to, size_t count, nccl_type type,
                             nccl_reduction what, nccl_comm comm, void* stream) {
  return count == 1 ? nccl_status::success
                    : nccl_over_sockets().all_reduce(from, to, count - 1, type, what, comm, stream);
}

nccl_status gathers_nothing(const void*, void*, size_t, nccl_type, nccl_comm, void*) {
  return nccl_status::success;
}

/// One more in the first of every hundredth sum.
nccl_status adds_now_so_now_otherwise(const void* from, void* to, size_t count, nccl_type type,
                                      nccl_reduction what, nccl_comm comm, void* stream) {
  static uint32_t calls = 0;
  auto said = nccl_over_sockets().all_reduce(from, to, count, type, what, comm, stream);
  if (++calls % 100 == 0)
    emulated::queue_on(device_stream(stream), [to] { return ++*static_cast<float*>(to), 0; });
  return said;
}

nccl_status does_not_finalize(nccl_comm) { return nccl_status::internal_error; }

std::jthread left_thread;
nccl_status leaves_a_thread(nccl_comm comm) {
  left_thread = std::jthread([](std::stop_token end) {
    while (!end.stop_requested()) std::this_thread::sleep_for(1ms);
  });
  return nccl_over_sockets().destroy(comm);
}

int left_listener = -1;
/// At every address, where anybody can call.
nccl_status listens_everywhere(nccl_comm* made, int size, nccl_id id, int rank, nccl_setup* setup) {
  if (left_listener < 0) {
    left_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    listen(left_listener, 1);
  }
  return nccl_over_sockets().init(made, size, id, rank, setup);
}

/// As NCCL does with what its files say.
nccl_status obeys_a_file(nccl_comm* made, int size, nccl_id id, int rank, nccl_setup* setup) {
  setenv("NCCL_TOPO_DUMP_FILE", "/tmp/topology", 1);
  return nccl_over_sockets().init(made, size, id, rank, setup);
}

TEST(NcclAlone, SeesWrongResults) {
  nccl_functions f = nccl_over_sockets();
  f.all_reduce = forgets_the_last;
  outcome_map wrong = outcomes_of(f);
  EXPECT_EQ(wrong["calls_f32"], "all_reduce of 1 gave something else");
  EXPECT_EQ(wrong["calls_bf16"], "all_reduce of 1 gave something else");
  EXPECT_EQ(wrong["window"], "the window does not give back what it was given");
  EXPECT_EQ(wrong["graph"], "wrong sums after replay 0");
  EXPECT_EQ(wrong["abort"], "wrong sums after abort 0");

  f = nccl_over_sockets();
  f.all_gather = gathers_nothing;
  wrong = outcomes_of(f);
  EXPECT_EQ(wrong["calls_bf16"], "all_gather of 1 gave something else");
  EXPECT_EQ(wrong["graph"], "bf16 of replay 0");
  EXPECT_EQ(wrong["wipe"], "there was nothing to wipe");

  f = nccl_over_sockets();
  f.all_reduce = adds_now_so_now_otherwise;
  EXPECT_TRUE(outcomes_of(f)["repeats"].starts_with("other bits in call "));
}

TEST(NcclAlone, SeesWhatIsNotWiped) {
  emulated::device device;
  cuda_row wipes_nothing = emulated_row;
  wipes_nothing.wipe = [](std::byte*, size_t, device_stream) { return 0; };
  const nccl_pins pins = closed_environment({2, 4096});
  outcome_map wrong = outcomes({device, wipes_nothing, nccl_over_sockets(), pins, {}, 0ms});
  EXPECT_EQ(wrong["wipe"], "the window is not zero");
}

TEST(NcclAlone, SeesAGroupThatDoesNotEnd) {
  nccl_functions f = nccl_over_sockets();
  f.finalize = does_not_finalize;
  EXPECT_TRUE(outcomes_of(f)["group"].starts_with(
      "communicator: NCCL failed on rank 0 in ncclCommFinalize: "));
}

TEST(NcclAlone, SeesThreadsAndListenersThatAreLeft) {
  nccl_functions f = nccl_over_sockets();
  f.destroy = leaves_a_thread;
  outcome_map wrong = outcomes_of(f, 100ms);
  left_thread = {};
  EXPECT_EQ(wrong.size(), 1u);
  EXPECT_TRUE(wrong["leaves_nothing"].starts_with("left behind: thread "));

  f = nccl_over_sockets();
  f.init = listens_everywhere;
  wrong = outcomes_of(f, 100ms);
  close(std::exchange(left_listener, -1));
  EXPECT_EQ(wrong.size(), 2u);
  EXPECT_TRUE(wrong["listens"].starts_with("listens at 0.0.0.0 port "));
  EXPECT_TRUE(wrong["leaves_nothing"].starts_with("left behind: listens at 0.0.0.0 port "));
}

constexpr const char* changed =
    "nccl: NCCL_TOPO_DUMP_FILE was set behind our back; see who sets it";

/// The first world of a process, in an environment that is as it was before once this has gone.
std::string refusal(
    const nccl_functions& library, const std::function<void()>& loads = [] {}) {
  emulated::device device;
  nccl_place place{device, emulated_row, library, closed_environment({2, 4096}), {}};
  loads();
  auto world = place.join();
  closed_environment({2, 4096});
  return world ? "none" : world.why().text;
}

/// It had made one by then. What checks say in such a process is the same.
TEST(NcclAlone, FormsNoGroupWhereTheLibraryChangesItsEnvironment) {
  nccl_functions f = nccl_over_sockets();
  f.init = obeys_a_file;
  EXPECT_EQ(refusal(f), changed);
  outcome_map wrong = outcomes_of(f);
  for (const char* name : {"group", "calls_f32", "abort", "environment"})
    EXPECT_EQ(wrong[name], changed) << name;
  EXPECT_EQ(refusal(nccl_over_sockets()), "none");
}

/// Then not even an id is asked for.
TEST(NcclAlone, FormsNoGroupInAnEnvironmentThatChangedWhileTheLibraryWasLoaded) {
  nccl_functions f = nccl_over_sockets();
  f.get_unique_id = [](nccl_id*) -> nccl_status { std::abort(); };
  EXPECT_EQ(refusal(f, [] { setenv("NCCL_TOPO_DUMP_FILE", "/tmp/topology", 1); }), changed);
}

}  // namespace
}  // namespace lethe::testing
