#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <thread>

#include "runtime/store/redis_link.hpp"
#include "store_samples.hpp"
#include "tests/redis_process.hpp"

namespace lethe::test {

struct redis_folder {
  temporary_folder own_folder;
};

/// A Redis with a folder of its own.
class redis_server : redis_folder, public redis_process {
 public:
  explicit redis_server(std::vector<std::string> more = {})
      : redis_process(own_folder.path(), std::move(more)) {}
  void forget() { fs::remove_all(own_folder / "appendonlydir"); }
  const temporary_folder& folder() const { return own_folder; }

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
