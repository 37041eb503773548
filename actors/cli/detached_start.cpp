#include "actors/cli/detached_start.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace lethe {

namespace {

/// Says what was added to the log since.
void repeat(int log, off_t& at) {
  char part[4096];
  for (ssize_t n; (n = ::pread(log, part, sizeof part, at)) > 0; at += n)
    if (::write(STDOUT_FILENO, part, size_t(n)) < 0) return;
}

/// Until the child says how it went, or ends without a word.
int await_child(pid_t child, int tells, int log) {
  off_t at = 0;
  pollfd p{.fd = tells, .events = POLLIN, .revents = 0};
  while (::poll(&p, 1, 50) <= 0) repeat(log, at);
  unsigned char code = 1;
  bool told = ::read(tells, &code, 1) == 1;
  int status = 0;
  if (!told && ::waitpid(child, &status, 0) == child && WIFEXITED(status))
    code = static_cast<unsigned char>(WEXITSTATUS(status));
  repeat(log, at);
  return code;
}

/// A file of one's own, even where an earlier process still writes to one of that name.
int fresh_log(const std::filesystem::path& path) {
  ::unlink(path.c_str());
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
}

void speak_to(int log) {
  int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::close(nothing);
  ::close(log);
}

}  // namespace

detached_start::~detached_start() {
  if (tell_ >= 0) ::close(tell_);
}

result<std::optional<int>> detached_start::split(const std::filesystem::path& path) {
  int log = fresh_log(path);
  if (log < 0) return fail("{}: cannot be written: {}", path.string(), std::strerror(errno));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail("no pipe: {}", std::strerror(errno));
  pid_t parent = ::getpid();
  pid_t child = ::fork();
  if (child < 0) return fail("no process for it: {}", std::strerror(errno));
  if (child > 0) {
    ::close(ends[1]);
    return std::optional(await_child(child, ends[0], log));
  }
  ::close(ends[0]);
  tell_ = ends[1];
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::raise(SIGTERM);
  speak_to(log);
  return std::optional<int>();
}

void detached_start::tell(int code) {
  ::prctl(PR_SET_PDEATHSIG, 0);
  auto byte = static_cast<unsigned char>(code);
  while (::write(tell_, &byte, 1) < 0 && errno == EINTR) {
  }
  ::close(tell_);
  tell_ = -1;
}

void tell_systemd(const char* state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (!path || (path[0] != '/' && path[0] != '@') || std::strlen(path) >= sizeof to.sun_path)
    return;
  size_t size = std::strlen(path);
  std::memcpy(to.sun_path, path, size);
  if (path[0] == '@') to.sun_path[0] = '\0';  // an abstract name
  int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  ::sendto(fd, state, std::strlen(state), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&to),
           socklen_t(offsetof(sockaddr_un, sun_path) + size));
  ::close(fd);
}

}  // namespace lethe
