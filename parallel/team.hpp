#pragma once

#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "parallel/word.hpp"
#include "runtime/base/result.hpp"

namespace lethe {

/// The threads of one rank. All run the same function over their share of each operation and meet
/// between operations; the caller of `run` is thread 0, the lead.
class team {
 public:
  static result<std::unique_ptr<team>> start(uint32_t threads, bool spin);
  team(const team&) = delete;
  ~team();

  uint32_t size() const { return threads_; }

  /// Calls work(thread) on every thread; returns when all have.
  template <class Work>
  void run(Work&& work) {
    work_ = [](void* context, uint32_t thread) {
      (*static_cast<std::remove_reference_t<Work>*>(context))(thread);
    };
    context_ = &work;
    if (threads_ > 1) go_.advance();
    work(0u);
    meet();
  }

  /// Until every thread has come here.
  void meet() {
    if (threads_ > 1) meeting_.wait();
  }

 private:
  team(uint32_t threads, bool spin) : threads_(threads), spin_(spin), meeting_(threads, spin) {}
  void serve(uint32_t thread);

  const uint32_t threads_;
  const bool spin_;
  word go_;
  barrier meeting_;
  void (*work_)(void*, uint32_t) = nullptr;
  void* context_ = nullptr;
  std::vector<std::thread> others_;
};

}  // namespace lethe
