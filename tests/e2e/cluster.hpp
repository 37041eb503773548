#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include "tests/e2e/command.hpp"
#include "tests/places.hpp"

namespace lethe {

using test_clock = std::chrono::steady_clock;

/// Whether it holds, now or before long.
template <class Holds>
bool eventually(Holds&& holds, double seconds = 60) {
  const auto until = test_clock::now() + std::chrono::duration<double>(seconds);
  while (!holds()) {
    if (test_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

/// What an HTTP server said; status 0: nothing that could be read.
struct http_said {
  int status = 0;
  std::string head, body;
};

inline std::string unchunked(std::string_view from) {
  std::string all;
  while (true) {
    size_t line = from.find("\r\n");
    if (line == from.npos) return all;
    size_t n = std::strtoul(std::string(from.substr(0, line)).c_str(), nullptr, 16);
    if (n == 0 || from.size() < line + 2 + n) return all;
    all.append(from.substr(line + 2, n));
    from.remove_prefix(line + 2 + n + 2);
  }
}

inline int connect_to(uint16_t port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{.sin_family = AF_INET,
                 .sin_port = htons(port),
                 .sin_addr = {htonl(INADDR_LOOPBACK)},
                 .sin_zero = {}};
  if (::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) return fd;
  ::close(fd);
  return -1;
}

/// A port that nobody listens on, for whoever must come back to the same one.
inline uint16_t free_port() {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof at;
  (void)!::bind(fd, reinterpret_cast<sockaddr*>(&at), size);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  ::close(fd);
  return ntohs(at.sin_port);
}

/// One request on a connection of its own.
inline http_said http_ask(uint16_t port, const std::string& path, const std::string& body = {},
                          int patience_ms = 60'000) {
  http_said said;
  int fd = connect_to(port);
  if (fd < 0) return said;
  std::string text = (body.empty() ? "GET " : "POST ") + path +
                     " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  if (!body.empty())
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  text += "\r\n" + body;
  std::string all;
  if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == ssize_t(text.size())) {
    char part[16384];
    pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
    while (::poll(&p, 1, patience_ms) == 1) {
      ssize_t n = ::recv(fd, part, sizeof part, 0);
      if (n <= 0) break;
      all.append(part, size_t(n));
    }
  }
  ::close(fd);
  size_t end = all.find("\r\n\r\n");
  if (!all.starts_with("HTTP/1.1 ") || end == all.npos) return said;
  said.status = std::atoi(all.c_str() + 9);
  said.head = all.substr(0, end);
  said.body = all.substr(end + 4);
  if (said.head.find("chunked") != said.head.npos) said.body = unchunked(said.body);
  return said;
}

/// A cluster file that is there, and the host of it that is meant.
struct host_of {
  std::string file, host;
  std::string program = places::program;
};

/// `lethe up` in the background, from start to end. Its control socket lies in the test's folder.
class running_cluster {
 public:
  /// One of several; control sockets stay where the test has put them.
  explicit running_cluster(const host_of& which) : file(which.file), program_(which.program) {
    start({"--host", which.host});
  }
  explicit running_cluster(const std::string& config, std::vector<std::string> more = {},
                           std::string program = places::program)
      : program_(std::move(program)) {
    ::setenv("XDG_RUNTIME_DIR", folder_.write("here", "").c_str(), 1);
    std::filesystem::remove(folder_ / "here");
    std::filesystem::create_directory(folder_ / "here");
    file = folder_.write("cluster.toml", config);
    start(more);
  }
  ~running_cluster() {
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  void start(std::vector<std::string> more = {}) {
    std::string out = folder_ / "out", err = folder_ / "err";
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::vector<std::string> words = {program_, "up", file};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    posix_spawn(&pid, program_.c_str(), &files, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
  }

  /// The port that a role listens on, as the program says.
  uint16_t port(const std::string& role) const {
    for (int i = 0; i < 1000; ++i) {
      std::istringstream lines(read_file(folder_ / "out"));
      std::string word, of, url;
      while (lines >> word >> of >> url)
        if (word == "listening" && of == role)
          return uint16_t(std::atoi(url.c_str() + url.rfind(':') + 1));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return 0;
  }
  std::string errors() const { return read_file(folder_ / "err"); }

  /// Waits until `what` appears among what it tells.
  bool tells(const std::string& what, double seconds = 30) const {
    auto until = test_clock::now() + std::chrono::duration<double>(seconds);
    while (test_clock::now() < until) {
      if (errors().find(what) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  /// Its exit status; -1 if it was ended by a signal or is still there.
  int wait(double seconds = 30) {
    auto until = test_clock::now() + std::chrono::duration<double>(seconds);
    int status = 0;
    while (test_clock::now() < until) {
      if (::waitpid(pid, &status, WNOHANG) == pid) {
        pid = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return -1;
  }

  const scratch_folder& folder() const { return folder_; }
  pid_t pid = -1;
  std::string file;

 private:
  scratch_folder folder_;
  const std::string program_;
};

/// Every engine that is wanted is ready.
inline bool is_whole(const std::string& file) {
  json_answer json(run_lethe({"status", "--json", "--cluster", file}).out);
  if (!json.valid) return false;
  uint64_t ready = 0, wanted = json.root["wanted"].get_uint64().value_unsafe();
  for (auto e : json.root["engines"].get_array())
    ready += std::string_view(e["phase"].get_string().value_unsafe()) == "ready";
  return ready == wanted;
}

inline std::string lab_config(const std::string& more = {}, const std::string& batching = {}) {
  return "profile = \"lab\"\n[model]\npath = \"" + std::string(places::source) +
         "/models/tiny\"\n[listen]\napi = \"127.0.0.1:0\"\nmetrics = \"127.0.0.1:0\"\n[batching]\n"
         "kv_memory = \"16 MiB\"\n" +
         batching + more;
}

inline std::string completion(uint32_t max_tokens, const std::string& more = {}) {
  return R"({"model":"tiny","prompt":"The answer is","seed":7,"ignore_eos":true,"max_tokens":)" +
         std::to_string(max_tokens) + more + "}";
}

}  // namespace lethe
