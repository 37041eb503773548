#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/http/http_server.hpp"

namespace lethe::http_test {

using namespace std::chrono_literals;

/// Both sides of the tests wait this long for what must come; nobody waits it out when all is well.
constexpr auto patience = 10s;

/// The program behind the server: does what the test says, and remembers what it was told.
class program final : public http_handler {
 public:
  using script = std::function<void(http_server&, http_request&)>;
  explicit program(script does = {}) : does_(std::move(does)) {}

  void arrived(http_server& from, http_request request) override {
    note([&] { arrived_.push_back(request.id); });
    if (does_) does_(from, request);
  }
  void left(uint64_t id) override {
    note([&] { ++lefts_[id]; });
  }
  void drained(uint64_t id, size_t bytes) override {
    note([&] { drained_[id] += bytes; });
  }
  void sent(uint64_t id) override {
    note([&] { ++sents_[id]; });
  }

  template <class Condition>
  bool wait(Condition holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, holds);
  }
  uint64_t wait_arrived(size_t count = 1) {
    EXPECT_TRUE(wait([&] { return arrived_.size() >= count; })) << "no request arrived";
    std::lock_guard lock(mutex_);
    return arrived_.size() >= count ? arrived_[count - 1] : 0;
  }
  bool wait_left(uint64_t id) {
    return wait([&] { return lefts_[id] == 1; });
  }
  bool wait_sent(uint64_t id) {
    return wait([&] { return sents_[id] == 1; });
  }
  bool wait_drained(uint64_t id, size_t bytes) {
    return wait([&] { return drained_[id] >= bytes; });
  }
  size_t drained_of(uint64_t id) {
    std::lock_guard lock(mutex_);
    return drained_[id];
  }
  size_t arrivals() {
    std::lock_guard lock(mutex_);
    return arrived_.size();
  }
  /// Each request that arrived has had one last word.
  void expect_one_last_word_each() {
    std::lock_guard lock(mutex_);
    for (auto id : arrived_) EXPECT_EQ(lefts_[id] + sents_[id], 1) << "request " << id;
  }

 private:
  template <class F>
  void note(F f) {
    {
      std::lock_guard lock(mutex_);
      f();
    }
    changed_.notify_all();
  }

  script does_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<uint64_t> arrived_;
  std::map<uint64_t, int> lefts_, sents_;
  std::map<uint64_t, size_t> drained_;
};

inline std::unique_ptr<http_server> serve(http_handler& h, http_limits limits = {},
                                          const std::string& address = "127.0.0.1:0") {
  http_listener where[] = {{"api", address}};
  auto s = http_server::start(where, limits, h);
  if (!s) ADD_FAILURE() << s.why().text;
  return s ? *std::move(s) : nullptr;
}

/// Says back what came: method, path, query and body, in one answer.
inline void echo(http_server& s, http_request& r) {
  std::string text(r.head.method);
  text.append(" ").append(r.head.path).append("?").append(r.head.query).append(" ").append(r.body);
  s.answer(r.id, {.content_type = "text/plain"}, text);
}

struct reply {
  int status = 0;
  std::string head, body;
  std::string field(const std::string& name) const {
    auto at = head.find("\r\n" + name + ": ");
    if (at == head.npos) return {};
    at += name.size() + 4;
    return head.substr(at, head.find("\r\n", at) - at);
  }
};

/// A client that speaks bytes.
class client {
 public:
  explicit client(const http_server& s, int receive_bytes = 0)
      : client(s.bound()[0].address, receive_bytes) {}
  explicit client(const std::string& address, int receive_bytes = 0) {
    if (address.starts_with("unix:")) {
      sockaddr_un to{.sun_family = AF_UNIX};
      std::strcpy(to.sun_path, address.c_str() + 5);
      open(AF_UNIX, &to, sizeof to, 0);
    } else if (address.starts_with("[::1]:")) {
      sockaddr_in6 to{.sin6_family = AF_INET6};
      to.sin6_port = htons(uint16_t(std::stoi(address.substr(6))));
      to.sin6_addr = in6addr_loopback;
      open(AF_INET6, &to, sizeof to, receive_bytes);
    } else {
      sockaddr_in to{.sin_family = AF_INET};
      to.sin_port = htons(uint16_t(std::stoi(address.substr(address.rfind(':') + 1))));
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      open(AF_INET, &to, sizeof to, receive_bytes);
    }
  }
  client(client&& o) noexcept : fd_(std::exchange(o.fd_, -1)), had_(std::move(o.had_)) {}
  ~client() { close(); }

  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void reset() {
    linger hard{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }
  void half_close() { shutdown(fd_, SHUT_WR); }

  /// False when the server has closed.
  bool send(std::string_view text) {
    while (!text.empty()) {
      ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(size_t(n));
    }
    return true;
  }
  std::string take(size_t bytes) {
    while (had_.size() < bytes && more()) {
    }
    return cut(std::min(bytes, had_.size()));
  }
  std::string take_to(const std::string& mark) {
    while (had_.find(mark) == had_.npos)
      if (!more()) return cut(had_.size());
    return cut(had_.find(mark) + mark.size());
  }
  std::string take_all() {
    while (more()) {
    }
    return cut(had_.size());
  }
  bool closed_now() { return !more() && had_.empty(); }

  reply take_head() {
    reply r{.head = take_to("\r\n\r\n")};
    if (r.head.size() > 12) r.status = std::atoi(r.head.c_str() + 9);
    return r;
  }
  /// Of an answer with a length or in chunks.
  reply take_reply(bool with_body = true) {
    auto r = take_head();
    if (!with_body) return r;
    if (auto length = r.field("Content-Length"); !length.empty()) r.body = take(std::stoul(length));
    if (r.field("Transfer-Encoding") == "chunked")
      for (auto piece = take_chunk(); !piece.empty(); piece = take_chunk()) r.body += piece;
    return r;
  }
  std::string take_chunk() {
    auto line = take_to("\r\n");
    if (line.empty()) return {};
    auto piece = take(std::stoul(line, nullptr, 16));
    EXPECT_EQ(take(2), "\r\n");
    return piece;
  }
  reply ask(std::string_view request) {
    EXPECT_TRUE(send(request));
    return take_reply();
  }

 private:
  void open(int family, const void* to, socklen_t size, int receive_bytes) {
    fd_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_bytes > 0)
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    timeval t{.tv_sec = std::chrono::seconds(patience).count(), .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    EXPECT_EQ(connect(fd_, static_cast<const sockaddr*>(to), size), 0) << std::strerror(errno);
  }
  bool more() {
    char bytes[16384];
    ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
    if (n < 0 && errno == EAGAIN) ADD_FAILURE() << "the server said nothing for too long";
    if (n > 0) had_.append(bytes, size_t(n));
    return n > 0;
  }
  std::string cut(size_t bytes) {
    auto piece = had_.substr(0, bytes);
    had_.erase(0, bytes);
    return piece;
  }

  int fd_ = -1;
  std::string had_;
};

inline std::string get(const std::string& path = "/") {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
}
inline std::string post(const std::string& body, const std::string& more = "") {
  return "POST /p HTTP/1.1\r\nHost: x\r\n" + more +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
inline std::string chunked(const std::string& chunks, const std::string& more = "") {
  return "POST /c HTTP/1.1\r\nHost: x\r\n" + more + "Transfer-Encoding: chunked\r\n\r\n" + chunks;
}
inline std::string chunk(const std::string& piece) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
  return size + piece + "\r\n";
}

/// Whether it becomes true before patience ends.
template <class Condition>
bool eventually(Condition holds) {
  for (auto end = std::chrono::steady_clock::now() + patience;
       std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(2ms))
    if (holds()) return true;
  return holds();
}

}  // namespace lethe::http_test
