#pragma once

#include <unistd.h>

#include <utility>

namespace lethe {

/// A descriptor with its owner; below 0: none.
class owned_fd {
 public:
  explicit owned_fd(int fd = -1) : fd_(fd) {}
  owned_fd(owned_fd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  owned_fd& operator=(owned_fd o) noexcept { return std::swap(fd_, o.fd_), *this; }
  ~owned_fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace lethe
