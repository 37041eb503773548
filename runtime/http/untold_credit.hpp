#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace lethe {

/// What was taken of answers and is not told to the client's thread yet: it goes on reading while
/// it has room, so a quarter of a window at a time is soon enough, and wakes it less.
class untold_credit {
 public:
  explicit untold_credit(size_t window) : batch_(window / 4) {}
  void begin(uint64_t call) {
    std::lock_guard guard(lock_);
    of_.emplace(call, 0);
  }
  void end(uint64_t call) {
    std::lock_guard guard(lock_);
    of_.erase(call);
  }
  /// What is to be told now.
  size_t add(uint64_t call, size_t bytes) {
    std::lock_guard guard(lock_);
    auto at = of_.find(call);
    if (at == of_.end()) return 0;
    at->second += bytes;
    return at->second < batch_ ? 0 : std::exchange(at->second, 0);
  }

 private:
  const size_t batch_;
  std::mutex lock_;
  std::unordered_map<uint64_t, size_t> of_;
};

}  // namespace lethe
