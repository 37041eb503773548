#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "parallel/link_door.hpp"
#include "parallel/rank_store.hpp"

namespace lethe::testing {

using blob = std::vector<std::byte>;

/// A store whose keys or values are not what others see.
class changing_store final : public rank_store {
 public:
  std::function<std::string(std::string)> key = [](std::string k) { return k; };
  std::function<void(const std::string&, blob&)> value = [](const std::string&, blob&) {};

  explicit changing_store(rank_store& real) : real_(real) {}
  result<void> set(std::string_view k, bytes_view v) override {
    return real_.set(key(std::string(k)), v);
  }
  result<blob> get(std::string_view k, deadline until) override {
    auto got = real_.get(key(std::string(k)), until);
    if (got) value(std::string(k), *got);
    return got;
  }

 private:
  rank_store& real_;
};

inline bool is_address_of(const std::string& key, uint32_t rank) {
  return key.ends_with("/" + std::to_string(rank));
}

inline owned_fd connect_to_port(uint16_t port) {
  owned_fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {}};
  check(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  return fd;
}

/// Somebody on the link between rank 1 and rank 0: keeps and may change what goes by.
class link_proxy {
 public:
  /// What rank 1 says on a connection: 0 carries calls, 1 messages. Bytes that are taken out of
  /// `said` wait there.
  struct listener {
    uint32_t connection;
    bool from_caller;
    blob all;                    // so far, as it came
    std::atomic<bool>& cut;      // set: the connection is closed
    size_t frames_from() const;  // where frames begin
  };
  std::function<void(listener&, blob& said)> change = [](listener&, blob&) {};

  link_proxy() {
    sockaddr_in at{AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}};
    door_ = owned_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    check(bind(door_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    check(listen(door_.get(), 8) == 0);
  }
  ~link_proxy() {
    shutdown(door_.get(), SHUT_RDWR);
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }

  /// Rank 1's view of the store: rank 0 is here.
  void stand_between(changing_store& store) {
    store.value = [this](const std::string& key, blob& value) {
      if (!is_address_of(key, 0)) return;
      sockaddr_in mine{};
      socklen_t size = sizeof mine;
      check(getsockname(door_.get(), reinterpret_cast<sockaddr*>(&mine), &size) == 0);
      // The addresses for each other rank are one and the same; the port is at the same place.
      for (size_t at = 0; at < value.size(); at += link_address::bytes) {
        std::memcpy(&real_port_, value.data() + at + offsetof(sockaddr_in, sin_port), 2);
        std::memcpy(value.data() + at + offsetof(sockaddr_in, sin_port), &mine.sin_port, 2);
      }
      if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
    };
  }

  /// All that went by, of both directions.
  blob seen() {
    std::lock_guard lock(mutex_);
    return seen_;
  }
  std::atomic<bool> cut = false;

 private:
  void serve() {
    std::vector<std::thread> relays;
    for (uint32_t n = 0; n < 2; ++n) {
      int fd = accept(door_.get(), nullptr, nullptr);
      if (fd < 0) break;
      relays.emplace_back([this, n, caller = owned_fd(fd)] {
        owned_fd real = connect_to_port(ntohs(real_port_));
        relay(n, caller.get(), real.get());
      });
    }
    for (std::thread& t : relays) t.join();
  }

  void relay(uint32_t n, int caller, int real) {
    listener ways[2] = {{n, true, {}, cut}, {n, false, {}, cut}};
    blob waiting[2];
    int from[2] = {caller, real}, open = 2;
    while (open > 0 && !cut && !ended_) {
      pollfd p[2] = {{from[0], POLLIN, 0}, {from[1], POLLIN, 0}};
      if (poll(p, 2, 20) <= 0) continue;
      for (int i = 0; i < 2; ++i) {
        if (p[i].revents == 0 || from[i] < 0) continue;
        std::byte bytes[65536];
        ssize_t got = recv(from[i], bytes, sizeof bytes, MSG_DONTWAIT);
        if (got <= 0) {
          shutdown(i == 0 ? real : caller, SHUT_WR);
          from[i] = -1;
          --open;
          continue;
        }
        pass(ways[i], waiting[i], {bytes, size_t(got)}, i == 0 ? real : caller);
      }
    }
  }

  void pass(listener& l, blob& waiting, bytes_view got, int to) {
    l.all.insert(l.all.end(), got.begin(), got.end());
    waiting.insert(waiting.end(), got.begin(), got.end());
    blob out = waiting;
    {
      std::lock_guard lock(mutex_);
      seen_.insert(seen_.end(), got.begin(), got.end());
      change(l, out);
    }
    if (out.empty()) return;  // it waits for more
    waiting.clear();
    ::send(to, out.data(), out.size(), MSG_NOSIGNAL);
  }

  owned_fd door_;
  uint16_t real_port_ = 0;
  std::mutex mutex_;
  blob seen_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

/// After hello and proof.
inline size_t link_proxy::listener::frames_from() const { return hello_bytes + proof_bytes; }

}  // namespace lethe::testing
