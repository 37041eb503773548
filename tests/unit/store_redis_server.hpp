#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <thread>

#include "runtime/store/redis_link.hpp"
#include "store_samples.hpp"

namespace lethe::test {

/// A Redis of the test's own, on a socket in the test's folder.
class redis_server {
 public:
  explicit redis_server(std::vector<std::string> more = {}) : more_(std::move(more)) { start(); }
  ~redis_server() { kill(); }
  redis_server(const redis_server&) = delete;

  void start() {
    std::vector<std::string> words = {
        "redis-server", "--port",    "0",         "--unixsocket", socket(), "--dir",
        folder_.path(), "--save",    "",          "--appendonly", "yes",    "--appendfsync",
        "always",       "--logfile", "server.log"};
    words.insert(words.end(), more_.begin(), more_.end());
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setpgid(0, 0);  // with the children that write its files
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    for (int left = 6000; left > 0 && !answers(); --left) ::usleep(10'000);
    if (!answers()) ADD_FAILURE() << "redis-server does not start; is it installed?";
  }
  void kill() {
    if (pid_ <= 0) return;
    if (::kill(-pid_, SIGKILL) != 0) ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void forget() { fs::remove_all(folder_ / "appendonlydir"); }
  std::string socket() const { return folder_ / "redis.sock"; }
  std::string url() const { return "unix:" + socket(); }
  const temporary_folder& folder() const { return folder_; }

  /// As nobody in particular: the first words of what Redis answers.
  std::string tell(std::initializer_list<const char*> words) const {
    std::unique_ptr<redisContext, redis_freer> c(redisConnectUnix(socket().c_str()));
    if (!c || c->err) return {};
    std::vector<const char*> argv(words);
    auto* r =
        static_cast<redisReply*>(redisCommandArgv(c.get(), int(argv.size()), argv.data(), nullptr));
    if (!r) return {};
    std::string text(r->str ? r->str : "", r->str ? r->len : 0);
    freeReplyObject(r);
    return text;
  }

 private:
  bool answers() const {
    const std::string told = tell({"PING"});
    return told == "PONG" || told.starts_with("NOAUTH");
  }

  temporary_folder folder_;
  std::vector<std::string> more_;
  pid_t pid_ = -1;
};

/// Between a store and its Redis: passes everything on, until it is told to break the connection
/// in place of the next answer.
class breaking_link {
 public:
  explicit breaking_link(const redis_server& server)
      : server_(server.socket()), path_(server.folder() / "between.sock") {
    listen_ = make(path_, ::bind);
    ::listen(listen_, 8);
    thread_ = std::thread([this] { run(); });
  }
  ~breaking_link() {
    stop_ = true;
    thread_.join();
    ::close(listen_);
  }
  breaking_link(const breaking_link&) = delete;
  std::string url() const { return "unix:" + path_; }
  void break_next(uint32_t times) { breaks_ = times; }
  bool has_broken() const { return breaks_ == 0; }

 private:
  template <class Call>
  static int make(const std::string& path, Call call) {
    int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    EXPECT_EQ(call(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    return fd;
  }
  static bool readable(int fd) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, 5) > 0;
  }
  static std::string take(int fd) {
    std::string bytes(1 << 16, '\0');
    ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
    bytes.resize(got > 0 ? size_t(got) : 0);
    return bytes;
  }
  static void give(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t gave = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (gave <= 0) return;
      bytes.remove_prefix(size_t(gave));
    }
  }
  /// Of scripts only: an answer to what a connection begins with may come.
  bool breaks(bool scripts) { return scripts && breaks_ > 0 && breaks_-- > 0; }

  void pass(int client, int server) {
    bool scripts = false;
    while (!stop_) {
      if (readable(client)) {
        const std::string asked = take(client);
        if (asked.empty()) return;
        scripts = asked.find("EVAL") != asked.npos;
        give(server, asked);
      }
      if (readable(server)) {
        const std::string told = take(server);
        if (told.empty() || breaks(scripts)) return;
        give(client, told);
      }
    }
  }
  void run() {
    while (!stop_) {
      if (!readable(listen_)) continue;
      int client = ::accept(listen_, nullptr, nullptr), server = make(server_, ::connect);
      pass(client, server);
      ::close(client);
      ::close(server);
    }
  }

  std::string server_, path_;
  int listen_ = -1;
  std::atomic<bool> stop_ = false;
  std::atomic<uint32_t> breaks_ = 0;
  std::thread thread_;
};

}  // namespace lethe::test
