// What strict takes from its processes, each in a child that shows it, beside one that is as it
// was.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include "runtime/hardening/harden.hpp"

namespace lethe {
namespace {

/// What a child found: its exit status, 100 for one that did not get there.
template <class Do>
int in_a_child(Do what) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(what());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

/// A process that waits; whether another one of its user, with no privilege, can read its memory.
int errno_of_reader(bool hardened) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t target = ::fork();
  if (target == 0) {
    // Nobody looks into who may do more.
    if (!give_up_capabilities() || (hardened && !refuse_dumps())) ::_exit(1);
    (void)!::write(ready[1], "r", 1);
    for (;;) ::pause();
  }
  char byte;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  const int why = in_a_child([&] {
    if (!give_up_capabilities()) return 101;
    const std::string path = "/proc/" + std::to_string(target) + "/mem";
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    return fd >= 0 ? 0 : errno;
  });
  ::kill(target, SIGKILL);
  ::waitpid(target, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  return why;
}

#ifndef LETHE_SANITIZED
TEST(Harden, NobodyWithoutPrivilegeReadsItsMemory) { EXPECT_EQ(errno_of_reader(true), EACCES); }
TEST(Harden, WithoutItAnyProcessOfTheUserDoes) { EXPECT_EQ(errno_of_reader(false), 0); }

TEST(Harden, NoCoreIsWritten) {
  EXPECT_EQ(in_a_child([] {
              rlimit limit;
              const bool hard = bool(refuse_dumps());
              ::getrlimit(RLIMIT_CORE, &limit);
              return hard && limit.rlim_max == 0 && ::prctl(PR_GET_DUMPABLE) == 0 ? 0 : 1;
            }),
            0);
}

/// Errno of a call, 0 where it does what it is asked.
int looks_into_another() {
  const pid_t parent = ::getppid();
  char byte;
  iovec here{&byte, 1}, there{&byte, 1};
  if (::process_vm_readv(parent, &here, 1, &there, 1, 0) == -1 && errno == EPERM) return EPERM;
  return 0;
}
int is_traced() { return ::ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 ? 0 : errno; }
int is_dumpable_again() { return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 ? 0 : errno; }
int maps_code() {
  void* at = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? errno : 0;
}
int makes_code_of_data() {
  void* at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return ::mprotect(at, 4096, PROT_READ | PROT_EXEC) == 0 ? 0 : errno;
}
int starts_a_program() {
  char name[] = "/bin/true";
  char* const words[] = {name, nullptr};
  const pid_t child = ::fork();
  if (child == 0) {
    ::execv(name, words);
    ::_exit(errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

struct call {
  const char* name;
  int (*what)();
  bool when_programs_are_allowed;  // refused then, too
};
constexpr call calls[] = {{"looks into another", looks_into_another, true},
                          {"is traced", is_traced, true},
                          {"is dumpable again", is_dumpable_again, true},
                          {"maps code", maps_code, false},
                          {"makes code of data", makes_code_of_data, false},
                          {"starts a program", starts_a_program, false}};

TEST(FilterCalls, RefusesThemAndNothingElse) {
  for (const auto& c : calls) {
    EXPECT_EQ(in_a_child(c.what), 0) << c.name << ": the control";
    for (auto code : {new_code::refused, new_code::allowed}) {
      const int found = in_a_child([&] { return filter_calls(code) ? c.what() : 101; });
      const bool refused = code == new_code::refused || c.when_programs_are_allowed;
      EXPECT_EQ(found, refused ? EPERM : 0) << c.name;
    }
  }
}

TEST(FilterCalls, AChildCanStillHardenItself) {
  for (auto code : {new_code::refused, new_code::allowed})
    EXPECT_EQ(in_a_child([&] {
                return filter_calls(code) && refuse_dumps() && filter_calls(new_code::refused) ? 0
                                                                                               : 1;
              }),
              0);
}

TEST(FilterCalls, HoldsForThreadsThatAreThere) {
  EXPECT_EQ(in_a_child([] {
              std::atomic<int> stage = 0, found = 0;
              std::thread other([&] {
                while (stage == 0) ::usleep(1000);
                found = maps_code();
              });
              const bool filtered = bool(filter_calls(new_code::refused));
              stage = 1;
              other.join();
              return filtered ? int(found) : 101;
            }),
            EPERM);
}

TEST(FilterCalls, ThreadsMemoryAndFilesGoOn) {
  EXPECT_EQ(in_a_child([] {
              if (!filter_calls(new_code::refused)) return 101;
              std::vector<std::thread> some;
              std::atomic<int> sum = 0;
              for (int i = 0; i < 4; ++i)
                some.emplace_back([&] { sum += std::vector<char>(1 << 22, 1)[5]; });
              for (auto& t : some) t.join();
              const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
              return sum == 4 && fd >= 0 ? 0 : 1;
            }),
            0);
}

TEST(FilterCalls, AFewThousandMappingsOfDataPass) {
  EXPECT_EQ(
      in_a_child([] {
        if (!filter_calls(new_code::refused)) return 101;
        for (int i = 0; i < 3000; ++i)
          if (::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            return 1;
        return 0;
      }),
      0);
}
#endif

TEST(Environment, KeepsWhatItKnowsAndNamesTheLoaders) {
  EXPECT_EQ(in_a_child([] {
              ::setenv("LD_PRELOAD_LIKE", "x", 1);
              ::setenv("SSLKEYLOGFILE", "x", 1);
              ::setenv("HOME", "/", 1);
              const auto loaders = close_environment();
              if (::getenv("SSLKEYLOGFILE") || ::getenv("LD_PRELOAD_LIKE")) return 1;
              if (!::getenv("HOME")) return 2;
              return loaders == std::vector<std::string>{"LD_PRELOAD_LIKE"} ? 0 : 3;
            }),
            0);
}

/// Bytes of a process that are locked, by /proc/self/status.
uint64_t locked_now() {
  std::FILE* f = std::fopen("/proc/self/status", "re");
  char line[256];
  unsigned long long kib = 0;
  while (std::fgets(line, sizeof line, f))
    if (std::sscanf(line, "VmLck: %llu", &kib) == 1) break;
  std::fclose(f);
  return kib << 10;
}

TEST(LockHeaps, LocksWhatTheLimitAllows) {
  EXPECT_EQ(in_a_child([] {
              const uint64_t before = locked_now();
              const auto m = lock_heaps();
              return m.locked > 0 && locked_now() > before ? 0 : 2;
            }),
            0);
}

TEST(LockHeaps, WithoutTheRightItTellsWhatIsLeft) {
  EXPECT_EQ(in_a_child([] {
              rlimit little{64 << 10, 64 << 10};
              if (::setrlimit(RLIMIT_MEMLOCK, &little) != 0) return 101;
              if (!give_up_capabilities()) return 102;
              return lock_heaps().left > 0 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace lethe
