#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>

namespace lethe {

/// A stack that begins as zeros and can be looked at after what ran on it has returned.
class own_stack {
 public:
  own_stack() {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
                    -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    low_ = static_cast<const char*>(at);
  }
  own_stack(const own_stack&) = delete;
  ~own_stack() { munmap(const_cast<char*>(low_), bytes); }

  /// On a thread of its own; returns when it has.
  void run(const std::function<void()>& work) {
    struct call {
      const std::function<void()>& work;
      const char* frame = nullptr;
    } c{work};
    pthread_attr_t on;
    pthread_attr_init(&on);
    pthread_attr_setstack(&on, const_cast<char*>(low_), bytes);
    auto body = [](void* given) -> void* {
      auto& mine = *static_cast<call*>(given);
      mine.frame = static_cast<const char*>(__builtin_frame_address(0));
      mine.work();
      return nullptr;
    };
    pthread_t thread;
    EXPECT_EQ(0, pthread_create(&thread, &on, body, &c));
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&on);
    frame_ = c.frame;
  }

  /// How far below the last work's caller anything was written.
  size_t depth() const {
    return size_t(frame_ - std::find_if(low_, frame_, [](char c) { return c != 0; }));
  }
  /// How many bytes further below it than that are not zero.
  size_t left_below(size_t depth) const {
    return size_t(std::count_if(low_, frame_ - depth, [](char c) { return c != 0; }));
  }

 private:
  static constexpr size_t bytes = size_t{2} << 20;
  const char* low_;
  const char* frame_ = nullptr;
};

}  // namespace lethe
