#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace lethe::emulated {

/// Threads that run one at a time, each until it gives way. They live on, asleep, between runs;
/// sanitizers are told of each switch.
class fibers {
 public:
  fibers() = default;
  fibers(const fibers&) = delete;
  ~fibers() { abandon(); }

  /// Every fiber below `count` is to run job(its number) from the start.
  void begin(uint32_t count, std::function<void(uint32_t)> job);
  /// Runs fiber i until it gives way or ends; true if it has ended.
  bool resume(uint32_t i);
  /// By a fiber: back to who resumed it.
  void give_way();
  /// Forgets fibers that stand in the middle of their job.
  void abandon();

 private:
  struct fiber;
  struct forget {
    void operator()(fiber* f) const;
  };
  static void enter(void* one);
  void live(fiber& f);

  std::vector<std::unique_ptr<fiber, forget>> all_;
  std::function<void(uint32_t)> job_;
  void* scheduler_ = nullptr;  // its stack, while a fiber runs
  fiber* current_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_bytes_ = 0;
  void* scheduler_fake_ = nullptr;
  void* scheduler_tsan_ = nullptr;
};

}  // namespace lethe::emulated
