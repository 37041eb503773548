#pragma once

#include <atomic>
#include <cstdint>

namespace lethe {

/// A counter that threads wait on: first spinning for a moment, if asked to, then asleep in the
/// kernel. Counts wrap; only "has it changed" is asked of them.
class alignas(64) word {
 public:
  /// What a word counts after n advances.
  static constexpr uint32_t nth(uint64_t n) { return uint32_t(n * step); }
  uint32_t count() const noexcept { return value_.load(std::memory_order_acquire) & ~dead; }
  bool aborted() const noexcept { return value_.load(std::memory_order_acquire) & dead; }

  /// Everything written before is seen by whoever sees the new count.
  void advance() noexcept;
  /// Until the count is not `seen` any more; false when aborted, also if aborted before.
  bool wait_past(uint32_t seen, bool spin) noexcept;
  /// Whoever waits, now or later, gets false.
  void abort() noexcept;

 private:
  // The lowest bit says aborted, the others count.
  static constexpr uint32_t dead = 1, step = 2;

  void wake() noexcept;

  std::atomic<uint32_t> value_ = 0;
  std::atomic<uint32_t> sleepers_ = 0;
};

/// Where a fixed number of threads meet, again and again.
class barrier {
 public:
  barrier(uint32_t threads, bool spin) noexcept : threads_(threads), spin_(spin) {}

  /// Until all have arrived; false when aborted.
  bool wait() noexcept;
  void abort() noexcept { epoch_.abort(); }

 private:
  alignas(64) std::atomic<uint32_t> arrived_ = 0;
  word epoch_;
  const uint32_t threads_;
  const bool spin_;
};

}  // namespace lethe
