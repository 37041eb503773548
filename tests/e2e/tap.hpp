#pragma once

#include <netinet/in.h>

#include <atomic>
#include <list>
#include <mutex>

#include "tests/e2e/cluster.hpp"

namespace lethe {

/// Stands before a server on loopback, passes everything on both ways, and keeps what it saw.
class tap {
 public:
  explicit tap(uint16_t to) : to_(to) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof at;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
        ::listen(listener_, 64) == 0 &&
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) == 0)
      port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~tap() {
    stopping_ = true;
    thread_.join();
    ::close(listener_);
  }
  tap(const tap&) = delete;
  tap& operator=(const tap&) = delete;

  uint16_t port() const { return port_; }
  std::string seen() const {
    std::lock_guard guard(lock_);
    return seen_;
  }
  bool saw(const std::string& what) const { return seen().find(what) != std::string::npos; }

 private:
  struct pair {
    int client, server;
  };

  void run() {
    std::list<pair> open;
    while (!stopping_) {
      std::vector<pollfd> all{{.fd = listener_, .events = POLLIN, .revents = 0}};
      for (const auto& p : open)
        for (int fd : {p.client, p.server})
          all.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      if (::poll(all.data(), all.size(), 20) <= 0) continue;
      size_t i = 1;
      for (auto at = open.begin(); at != open.end(); i += 2) {
        bool good =
            pass(all[i], at->client, at->server) && pass(all[i + 1], at->server, at->client);
        if (!good) ::close(at->client), ::close(at->server);
        at = good ? std::next(at) : open.erase(at);
      }
      if (all[0].revents == 0) continue;
      pair fresh{::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), connect_to(to_)};
      if (fresh.client >= 0 && fresh.server >= 0) {
        open.push_back(fresh);
      } else {
        ::close(fresh.client);
        ::close(fresh.server);
      }
    }
    for (const auto& p : open) ::close(p.client), ::close(p.server);
  }

  /// False when one side has ended.
  bool pass(const pollfd& p, int from, int to) {
    if (p.revents == 0) return true;
    char part[65536];
    ssize_t n = ::recv(from, part, sizeof part, 0);
    if (n <= 0) return false;
    {
      std::lock_guard guard(lock_);
      seen_.append(part, size_t(n));
    }
    for (ssize_t sent = 0; sent < n;) {
      ssize_t now = ::send(to, part + sent, size_t(n - sent), MSG_NOSIGNAL);
      if (now <= 0) return false;
      sent += now;
    }
    return true;
  }

  uint16_t to_, port_ = 0;
  int listener_ = -1;
  std::atomic<bool> stopping_{false};
  mutable std::mutex lock_;
  std::string seen_;
  std::thread thread_;
};

}  // namespace lethe
