#include "actors/cluster/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>

extern char** environ;

namespace lethe {

namespace {

constexpr size_t last_words_max = 4096;
constexpr std::string_view last_words_mark = "last words: ";
constexpr int out_of_the_way = 64;  // no child's descriptor has so high a number

/// Held by this process for all its life and inherited by nobody: its other end, which children
/// have, ends with us.
int life_pipe() {
  static const int read_end = [] {
    int both[2];
    return ::pipe2(both, O_CLOEXEC) == 0 ? both[0] : -1;
  }();
  return read_end;
}

error not_started() { return fail("another process cannot be started: {}", std::strerror(errno)); }

std::string last_words(int order) {
  std::string text(last_words_max, '\0');
  ssize_t got = ::pread(order, text.data(), text.size(), 0);
  text.resize(size_t(std::max<ssize_t>(got, 0)));
  return text.starts_with(last_words_mark) ? text.substr(last_words_mark.size()) : "";
}

/// One's source may be another's target: all are copied first.
result<std::vector<owned_fd>> copies(const std::vector<int>& of) {
  std::vector<owned_fd> all;
  for (int fd : of) {
    owned_fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, out_of_the_way));
    if (copy.get() < 0) return not_started();
    all.push_back(std::move(copy));
  }
  return all;
}

}  // namespace

result<owned_fd> order_in_memory(const std::vector<std::byte>& frame) {
  owned_fd fd(::memfd_create("order", MFD_CLOEXEC));
  if (fd.get() < 0 || ::write(fd.get(), frame.data(), frame.size()) != ssize_t(frame.size()) ||
      ::lseek(fd.get(), 0, SEEK_SET) != 0)
    return not_started();
  return fd;
}

result<int> start_child(const std::vector<std::string>& words, int order, std::optional<int> own) {
  std::vector<int> given{order, life_pipe()};
  if (own) given.push_back(*own);
  auto held = copies(given);
  if (!held) return held.why();
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (size_t i = 0; i < held->size(); ++i)
    posix_spawn_file_actions_adddup2(&files, (*held)[i].get(), order_fd + int(i));
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setpgroup(&how, 0);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (const auto& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  errno = ::posix_spawn(&pid, "/proc/self/exe", &files, &how, argv.data(), environ);
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  if (errno != 0) return not_started();
  return pid;
}

siginfo_t await_end(int child) {
  siginfo_t info{};
  while (::waitid(P_PID, id_t(child), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  return info;
}

std::string how_it_ended(const siginfo_t& info, int order) {
  if (info.si_code != CLD_EXITED)
    return fmt::format("its process was ended by signal {} ({})", info.si_status,
                       ::strsignal(info.si_status));
  auto words = last_words(order);
  return words.empty() ? fmt::format("its process ended with status {}", info.si_status) : words;
}

std::vector<std::byte> read_order(size_t bytes_max) {
  std::vector<std::byte> frame(bytes_max);
  ssize_t got = ::read(order_fd, frame.data(), frame.size());
  frame.resize(size_t(std::max<ssize_t>(got, 0)));
  return frame;
}

void end_with_parent() {
  std::thread([] {
    char nothing;
    while (::read(life_fd, &nothing, 1) < 0 && errno == EINTR) {
    }
    ::_exit(1);
  }).detach();
}

void leave_last_words(const std::string& why) {
  std::string text = std::string(last_words_mark) + why;
  text.resize(std::min(text.size(), last_words_max));
  if (::ftruncate(order_fd, 0) == 0) (void)!::pwrite(order_fd, text.data(), text.size(), 0);
}

}  // namespace lethe
