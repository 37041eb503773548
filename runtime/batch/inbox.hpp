#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/batch/engine.hpp"

namespace lethe {

/// What other threads ask of a step loop.
struct letter {
  enum class what : uint8_t { submit, stop, cancel, shutdown };
  what kind;
  uint64_t id = 0;
  uint32_t choice = 0;
  request* from = nullptr;
  uint64_t at_ns = 0;  // when it was submitted, by the loop's clock
};

class inbox {
 public:
  void put(letter l) {
    {
      std::lock_guard guard(lock_);
      letters_.push_back(l);
    }
    arrived_.fetch_add(1, std::memory_order_release);
    arrived_.notify_one();
  }
  std::vector<letter> take() {
    std::lock_guard guard(lock_);
    return std::exchange(letters_, {});
  }
  uint32_t arrived() const { return arrived_.load(std::memory_order_acquire); }
  /// Sleeps until arrived() differs from `seen`.
  void wait(uint32_t seen) const { arrived_.wait(seen, std::memory_order_acquire); }

 private:
  std::mutex lock_;
  std::vector<letter> letters_;
  std::atomic<uint32_t> arrived_{0};
};

/// What a step loop shows to other threads.
class engine_board {
 public:
  void set(const engine_numbers& n) {
    std::lock_guard guard(lock_);
    numbers_ = n;
  }
  void set_dead(const error& why) {
    std::lock_guard guard(lock_);
    health_ = why;
  }
  engine_numbers numbers() const {
    std::lock_guard guard(lock_);
    return numbers_;
  }
  result<void> health() const {
    std::lock_guard guard(lock_);
    return health_;
  }

 private:
  mutable std::mutex lock_;
  engine_numbers numbers_;
  result<void> health_;
};

}  // namespace lethe
