#include "parallel/nccl_environment.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "parallel/nccl_library.hpp"
#include "runtime/base/temporary_folder.hpp"

// What a rank lets NCCL read, and the library itself in an environment that means it ill.

namespace lethe::testing {
namespace {

const nccl_pins pins{.interface = "lo", .staging = {8, 1 << 20}};
constexpr const char* no_file = "/nonexistent/nccl.conf";

/// What a process of its own makes of it: NCCL reads its environment once.
int in_a_child(const std::function<int()>& body) {
  pid_t child = fork();
  if (child == 0) _exit(body());
  int how = 0;
  waitpid(child, &how, 0);
  return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

TEST(NcclEnvironment, LetsNothingListenLoadOrVary) {
  auto made = nccl_environment(pins);
  ASSERT_TRUE(made);
  const std::map<std::string, std::string> want{
      {"NCCL_RAS_ENABLE", "0"},        {"NCCL_NET_PLUGIN", "none"},
      {"NCCL_TUNER_PLUGIN", "none"},   {"NCCL_PROFILER_PLUGIN", "none"},
      {"NCCL_ENV_PLUGIN", "none"},     {"NCCL_GIN_ENABLE", "0"},
      {"NCCL_NVTX_DISABLE", "1"},      {"NCCL_CONF_FILE", "/dev/null"},
      {"NCCL_DEBUG", "WARN"},          {"NCCL_DEBUG_FILE", "/dev/null"},
      {"NCCL_SOCKET_IFNAME", "=lo"},   {"NCCL_LAUNCH_ORDER_IMPLICIT", "1"},
      {"NCCL_LAUNCH_RACE_FATAL", "1"}, {"NCCL_ALGO", "ring"},
      {"NCCL_PROTO", "simple"},        {"NCCL_NVLS_ENABLE", "0"},
      {"NCCL_COLLNET_ENABLE", "0"},    {"NCCL_BUFFSIZE", "1048576"},
      {"NCCL_MIN_P2P_NCHANNELS", "8"}, {"NCCL_MAX_P2P_NCHANNELS", "8"}};
  EXPECT_EQ(*made, want);
}

TEST(NcclEnvironment, WantsAnInterface) {
  for (const char* bad : {"", "eth0,eth1", "^lo", "=lo", "eth 0", "a-name-that-is-too-long"})
    EXPECT_FALSE(nccl_environment({.interface = bad})) << bad;
  for (const char* good : {"eth0", "enp1s0f0", "bond0.12", "my-if_0"})
    EXPECT_EQ(nccl_environment({.interface = good}).operator*().at("NCCL_SOCKET_IFNAME"),
              std::string("=") + good);
}

TEST(NcclEnvironment, RemovesWhatElseIsThere) {
  EXPECT_EQ(in_a_child([] {
              setenv("NCCL_DEBUG", "TRACE", 1);
              setenv("NCCL_TOPO_DUMP_FILE", "/tmp/x", 1);
              setenv("NVTX_INJECTION64_PATH", "/tmp/x.so", 1);
              setenv("CUDA_INJECTION64_PATH", "/tmp/x.so", 1);
              setenv("NCCLISH", "stays", 1);
              if (!close_nccl_environment(pins, no_file)) return 1;
              if (getenv("NCCL_TOPO_DUMP_FILE") || getenv("NVTX_INJECTION64_PATH")) return 2;
              if (getenv("CUDA_INJECTION64_PATH") || !getenv("NCCLISH")) return 3;
              return std::string(getenv("NCCL_DEBUG")) == "WARN" ? 0 : 4;
            }),
            0);
}

TEST(NcclEnvironment, SeesWhatWasChangedBehindIt) {
  EXPECT_EQ(in_a_child([] {
              if (!close_nccl_environment(pins, no_file)) return 1;
              if (!check_nccl_environment(pins)) return 2;
              setenv("NCCL_TOPO_FILE", "/tmp/x", 1);
              if (check_nccl_environment(pins)) return 3;
              unsetenv("NCCL_TOPO_FILE");
              if (!check_nccl_environment(pins)) return 4;
              setenv("NCCL_ALGO", "tree", 1);
              if (check_nccl_environment(pins)) return 5;
              unsetenv("NCCL_ALGO");
              return check_nccl_environment(pins) ? 6 : 0;
            }),
            0);
}

TEST(NcclEnvironment, RefusesAHostWithAFileForNccl) {
  auto folder = temporary_folder::make("nccl");
  ASSERT_TRUE(folder);
  auto file = folder->write("nccl.conf", "NCCL_RAS_ENABLE=1\n");
  ASSERT_TRUE(file);
  auto closed = close_nccl_environment(pins, file->c_str());
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.why().text,
            "nccl: " + *file + " is there, and NCCL would do as it says; remove it");
}

/// A user's file that has NCCL write down what it does. Without us it is obeyed.
TEST(NcclEnvironment, KeepsTheLibraryFromFilesOfTheUser) {
  const char* path = *LETHE_NCCL_LIBRARY ? LETHE_NCCL_LIBRARY : "libnccl.so.2";
  if (in_a_child([path] { return load_nccl(path) ? 0 : 1; }) != 0)
    GTEST_SKIP() << "NCCL is not installed";
  auto folder = temporary_folder::make("nccl");
  ASSERT_TRUE(folder);
  std::string told = folder->path() / "told";
  auto file = folder->write("nccl.conf", "NCCL_DEBUG=INFO\nNCCL_DEBUG_FILE=" + told + "\n");
  ASSERT_TRUE(file);
  for (bool ours : {true, false}) {
    int how = in_a_child([&] {
      setenv("NCCL_CONF_FILE", file->c_str(), 1);
      if (ours && !close_nccl_environment(pins, no_file)) return 1;
      auto nccl = load_nccl(path);
      nccl_id id{};
      if (!nccl || nccl->get_unique_id(&id) != nccl_status::success) return 2;
      return bool(check_nccl_environment(pins)) == ours ? 0 : 3;
    });
    EXPECT_EQ(how, 0);
    EXPECT_EQ(std::filesystem::exists(told), !ours);
  }
}

}  // namespace
}  // namespace lethe::testing
