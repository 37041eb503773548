#include "parallel/word.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace lethe {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);

// A pause takes 40 to 140 cycles: about a tenth of a millisecond, several barriers' worth.
constexpr int spins = 2000;

inline void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futex(const std::atomic<uint32_t>& at, int what, uint32_t value) noexcept {
  syscall(SYS_futex, &at, what, value, nullptr, nullptr, 0);
}

}  // namespace

// Sleeper: count itself, then look at the value. Waker: change the value, then look for sleepers.
// Both sequentially consistent, so one of the two sees the other.
void word::wake() noexcept {
  if (sleepers_.load() != 0) futex(value_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void word::advance() noexcept {
  value_.fetch_add(step);
  wake();
}

void word::abort() noexcept {
  value_.fetch_or(dead);
  wake();
}

bool word::wait_past(uint32_t seen, bool spin) noexcept {
  uint32_t value = value_.load();
  for (int i = 0; spin && i < spins && value == seen; ++i) {
    pause_briefly();
    value = value_.load(std::memory_order_acquire);
  }
  while (value == seen) {
    sleepers_.fetch_add(1);
    futex(value_, FUTEX_WAIT_PRIVATE, seen);
    sleepers_.fetch_sub(1);
    value = value_.load();
  }
  return (value & dead) == 0;
}

bool barrier::wait() noexcept {
  uint32_t seen = epoch_.count();
  if (arrived_.fetch_add(1) + 1 < threads_) return epoch_.wait_past(seen, spin_);
  arrived_.store(0, std::memory_order_relaxed);
  epoch_.advance();
  return !epoch_.aborted();
}

}  // namespace lethe
