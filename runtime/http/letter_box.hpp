#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/base/check.hpp"

namespace lethe {

/// Any thread puts in; one thread, which waits for an eventfd, takes out and is woken once for
/// many.
template <class Letter>
class letter_box {
 public:
  /// `wake_fd` is the box's from here on.
  explicit letter_box(int wake_fd) : wake_fd_(wake_fd) {}
  ~letter_box() { ::close(wake_fd_); }
  letter_box(const letter_box&) = delete;
  letter_box& operator=(const letter_box&) = delete;
  int fd() const { return wake_fd_; }

  template <class... Letters>
  void put(Letters... letters) {
    bool first = false;
    {
      std::lock_guard lock(mutex_);
      first = letters_.empty();
      (letters_.push_back(std::move(letters)), ...);
    }
    if (first) wake();
  }
  std::vector<Letter> take() {
    uint64_t count = 0;
    (void)!::read(wake_fd_, &count, sizeof count);  // before the letters: none is put unannounced
    std::lock_guard lock(mutex_);
    return std::exchange(letters_, {});
  }
  uint64_t wakeups() const { return wakeups_.load(std::memory_order_relaxed); }

 private:
  void wake() {
    wakeups_.fetch_add(1, std::memory_order_relaxed);
    uint64_t one = 1;
    check(::write(wake_fd_, &one, sizeof one) == sizeof one);
  }

  int wake_fd_;
  std::atomic<uint64_t> wakeups_{0};
  std::mutex mutex_;
  std::vector<Letter> letters_;
};

}  // namespace lethe
