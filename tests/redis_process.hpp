#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

namespace lethe {

/// A Redis of the test's own, on a socket in a folder that outlives it, that writes before it
/// answers unless `more` settings say otherwise.
class redis_process {
 public:
  explicit redis_process(std::filesystem::path folder, std::vector<std::string> more = {})
      : folder_(std::move(folder)), more_(std::move(more)) {
    start();
  }
  ~redis_process() { kill(); }
  redis_process(const redis_process&) = delete;
  redis_process& operator=(const redis_process&) = delete;

  void start() {
    std::vector<std::string> words = {
        "redis-server", "--port",    "0",         "--unixsocket", socket(), "--dir",
        folder_,        "--save",    "",          "--appendonly", "yes",    "--appendfsync",
        "always",       "--logfile", "server.log"};
    words.insert(words.end(), more_.begin(), more_.end());
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setpgid(0, 0);  // with the children that write its files
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    for (int left = 6000; left > 0 && !answers(); --left) ::usleep(10'000);
    EXPECT_TRUE(answers()) << "redis-server does not start; is it installed?";
  }
  void kill() {
    if (pid_ <= 0) return;
    if (::kill(-pid_, SIGKILL) != 0) ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  void stop() const { ::kill(-pid_, SIGSTOP); }
  void go_on() const { ::kill(-pid_, SIGCONT); }
  std::string socket() const { return (folder_ / "redis.sock").string(); }
  std::string url() const { return "unix:" + socket(); }

 private:
  bool answers() const {
    int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    socket().copy(at.sun_path, sizeof at.sun_path - 1);
    char said[8] = {};
    pollfd p{fd, POLLIN, 0};
    bool good = ::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
                ::send(fd, "PING\r\n", 6, MSG_NOSIGNAL) == 6 && ::poll(&p, 1, 5000) == 1 &&
                ::recv(fd, said, sizeof said - 1, 0) > 0;
    ::close(fd);
    const std::string word(said);
    return good && (word.starts_with("+PONG") || word.starts_with("-NOAUTH"));
  }

  const std::filesystem::path folder_;
  const std::vector<std::string> more_;
  pid_t pid_ = -1;
};

}  // namespace lethe
