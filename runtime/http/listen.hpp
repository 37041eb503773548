#pragma once

#include <string>
#include <utility>

#include "runtime/base/result.hpp"

namespace lethe {

/// A socket that listens, closed (and a Unix socket's path removed) at its end.
class listen_socket {
 public:
  /// "127.0.0.1:8080", "[::1]:0", "unix:/path".
  static result<listen_socket> open(const std::string& address);

  listen_socket(listen_socket&& o) noexcept
      : fd_(std::exchange(o.fd_, -1)), path_(std::move(o.path_)), bound_(std::move(o.bound_)) {}
  listen_socket& operator=(listen_socket&&) = delete;
  ~listen_socket();

  int fd() const { return fd_; }
  const std::string& bound() const { return bound_; }  // with the real port

 private:
  explicit listen_socket(int fd) : fd_(fd) {}
  static result<listen_socket> open_unix(const std::string& address, const std::string& path);
  static result<listen_socket> open_tcp(const std::string& address);

  int fd_;
  std::string path_;
  std::string bound_;
};

}  // namespace lethe
