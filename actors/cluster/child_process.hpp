#pragma once

#include <unistd.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/result.hpp"

// This program as another process: what a parent gives its child, and hears of it at its end.

namespace lethe {

/// Descriptors of a child: its order, in whose place it leaves its last words, and a pipe that ends
/// when its parent does. Others follow.
inline constexpr int order_fd = 3, life_fd = 4, first_own_fd = 5;

/// A descriptor that children don't inherit by themselves.
class held_fd {
 public:
  explicit held_fd(int fd = -1) : fd_(fd) {}
  held_fd(held_fd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  held_fd& operator=(held_fd&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~held_fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Those bytes behind a descriptor.
result<held_fd> order_in_memory(const std::vector<std::byte>& frame);
/// Starts this program with those words. It has `order` and `own` as its descriptors, ends with
/// this process, and is deaf to the terminal's Ctrl-C.
result<int> start_child(const std::vector<std::string>& words, int order,
                        std::initializer_list<int> own = {});
/// What a child left in its order's place; empty if nothing.
std::string last_words(int order);

// In the child:

/// The order; empty if there is none.
std::vector<std::byte> read_order(size_t bytes_max);
/// Ends this process as soon as its parent has ended.
void end_with_parent();
/// Why this process ends. Its parent reads it however the network fares.
void leave_last_words(const std::string& why);

}  // namespace lethe
