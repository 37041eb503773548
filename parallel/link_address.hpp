#pragma once

#include <netinet/in.h>

#include <array>
#include <chrono>
#include <string>

#include "runtime/base/bytes.hpp"
#include "runtime/base/owned_fd.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// An IP address and a port, as ranks tell them through the store.
struct link_address {
  static constexpr size_t bytes = sizeof(sockaddr_in6);
  std::array<char, bytes> raw{};
  static result<link_address> parse(const std::string& numeric, uint16_t port);
  /// Of bytes that came from another process.
  static result<link_address> read(bytes_view b);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(raw.data()); }
  uint16_t port() const;
  /// Whether it is the same IP address, whatever the ports.
  bool is_host_of(const sockaddr& other) const;
  std::string text() const;
};

/// A socket that listens there and does not wait. Port 0: any; `at` has the real one afterwards.
result<owned_fd> listen_at(link_address& at);

/// A connection that is cut while nobody waits for anything is noticed in about that time, too.
void keep_alive(int fd, std::chrono::milliseconds timeout);

}  // namespace lethe
