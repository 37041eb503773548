#include "actors/audit/child.hpp"

#include <fcntl.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

#include "runtime/hardening/harden.hpp"

namespace lethe::audit {

namespace {

using steady = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_again{10};
constexpr std::chrono::seconds command_patience{60};

std::string content_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return {};
  std::string text(size_t(info.st_size), '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(size_t(std::max<ssize_t>(got, 0)));
  return text;
}

/// A program that root starts has all rights again, unless told not to; then nobody of its user
/// could look into it, closed or not.
void stay_without_privileges() {
  ::prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED);
  give_up_capabilities();
}

/// Between fork and exec, where little is allowed. It appends, so that two descriptors of one file
/// don't overwrite each other.
[[noreturn]] void become(char* const* words, char* const* environment, int out, int err) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  stay_without_privileges();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  ::execve(words[0], words, environment);
  ::_exit(127);
}

}  // namespace

result<std::unique_ptr<child>> child::start(const std::vector<std::string>& words,
                                            const std::string& runtime_folder,
                                            const std::vector<std::string>& variables) {
  std::unique_ptr<child> c(new child);
  c->out_ = ::memfd_create("output", MFD_CLOEXEC);
  c->err_ = ::memfd_create("errors", MFD_CLOEXEC);
  if (c->out_ < 0 || c->err_ < 0) return fail("no memory for output: {}", std::strerror(errno));
  ::fcntl(c->out_, F_SETFL, O_APPEND);
  ::fcntl(c->err_, F_SETFL, O_APPEND);
  std::vector<std::string> environment = {"XDG_RUNTIME_DIR=" + runtime_folder, "LC_ALL=C"};
  if (const char* path = std::getenv("PATH")) environment.push_back(std::string("PATH=") + path);
  environment.insert(environment.end(), variables.begin(), variables.end());
  std::vector<char*> argv, envp;
  for (const auto& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  for (const auto& e : environment) envp.push_back(const_cast<char*>(e.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  c->pid_ = ::fork();
  if (c->pid_ < 0) return fail("{}: cannot be started: {}", words[0], std::strerror(errno));
  if (c->pid_ == 0) become(argv.data(), envp.data(), c->out_, c->err_);
  return c;
}

child::~child() {
  if (pid_ > 0 && !status_) {
    ::kill(pid_, SIGKILL);
    ::kill(pid_, SIGCONT);
    reap(0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

bool child::reap(int flags) {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, flags) == pid_)
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_.has_value();
}

std::string child::out() const { return content_of(out_); }
std::string child::err() const { return content_of(err_); }
bool child::is_running() { return !reap(WNOHANG); }

std::optional<int> child::wait(std::chrono::seconds patience) {
  const auto until = steady::now() + patience;
  while (!reap(WNOHANG) && steady::now() < until) std::this_thread::sleep_for(look_again);
  return status_;
}

bool child::tells(const std::string& what, std::chrono::seconds patience) {
  const auto until = steady::now() + patience;
  while (err().find(what) == std::string::npos) {
    if (!is_running() || steady::now() > until) return err().find(what) != std::string::npos;
    std::this_thread::sleep_for(look_again);
  }
  return true;
}

result<std::string> child::url(const std::string& role, std::chrono::seconds patience) {
  const auto until = steady::now() + patience;
  for (bool last = false; !last; std::this_thread::sleep_for(look_again)) {
    last = !is_running() || steady::now() > until;
    std::istringstream lines(out());
    for (std::string line; std::getline(lines, line) && !lines.eof();)
      if (const auto begin = "listening " + role + " "; line.starts_with(begin))
        return line.substr(begin.size());
  }
  return fail("no listener of the {}: {}", role, err());
}

result<std::string> run_child(const std::vector<std::string>& words,
                              const std::string& runtime_folder,
                              const std::vector<std::string>& variables) {
  auto c = child::start(words, runtime_folder, variables);
  if (!c) return c.why();
  const auto status = (*c)->wait(command_patience);
  if (status == 0) return (*c)->out();
  return fail("{} {}: {}", words[0], words.size() > 1 ? words[1] : "",
              status ? (*c)->err() : "it does not end");
}

}  // namespace lethe::audit
