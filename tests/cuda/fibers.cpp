#include "tests/cuda/fibers.hpp"

#include <sys/mman.h>

#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace lethe::emulated {
namespace {

constexpr size_t stack_bytes = 256 << 10;  // sanitizers' frames are large
constexpr size_t guard_bytes = 4096;

// What a sanitizer must know of a switch of stacks; nothing without one.
#if defined(__SANITIZE_ADDRESS__)
void leave_stack(void** fake, const void* to, size_t bytes) {
  __sanitizer_start_switch_fiber(fake, to, bytes);
}
void reach_stack(void* fake, const void** from, size_t* bytes) {
  __sanitizer_finish_switch_fiber(fake, from, bytes);
}
#else
void leave_stack(void**, const void*, size_t) {}
void reach_stack(void*, const void**, size_t*) {}
#endif
#if defined(__SANITIZE_THREAD__)
void* new_identity() { return __tsan_create_fiber(0); }
void* own_identity() { return __tsan_get_current_fiber(); }
void become(void* identity) { __tsan_switch_to_fiber(identity, 0); }
void end_identity(void* identity) { __tsan_destroy_fiber(identity); }
#else
void* new_identity() { return nullptr; }
void* own_identity() { return nullptr; }
void become(void*) {}
void end_identity(void*) {}
#endif

}  // namespace

struct fibers::fiber {
  fibers* home;
  uint32_t number;
  std::byte* stack;
  ucontext_t context;
  void* fake = nullptr;
  void* identity = nullptr;
  bool ended = true;
};

void fibers::forget::operator()(fiber* f) const {
  end_identity(f->identity);
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(f->stack, guard_bytes + stack_bytes);
#endif
  munmap(f->stack, guard_bytes + stack_bytes);
  delete f;
}

void fibers::abandon() { all_.clear(); }

void fibers::enter(uint32_t low, uint32_t high) {
  auto* f = reinterpret_cast<fiber*>(uintptr_t{high} << 32 | low);
  f->home->live(*f);
}

/// One job after the other; between two of them the fiber sleeps.
void fibers::live(fiber& f) {
  reach_stack(nullptr, &scheduler_stack_, &scheduler_bytes_);
  for (;;) {
    job_(f.number);
    f.ended = true;
    give_way();
  }
}

void fibers::begin(uint32_t count, std::function<void(uint32_t)> job) {
  job_ = std::move(job);
  scheduler_tsan_ = own_identity();
  while (all_.size() < count) {
    auto* f = new fiber{};
    f->home = this;
    f->number = uint32_t(all_.size());
    void* memory = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, guard_bytes, PROT_NONE) != 0) std::abort();
    f->stack = static_cast<std::byte*>(memory);
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack + guard_bytes;
    f->context.uc_stack.ss_size = stack_bytes;
    f->context.uc_link = nullptr;
    auto address = reinterpret_cast<uintptr_t>(f);
    makecontext(&f->context, reinterpret_cast<void (*)()>(enter), 2, uint32_t(address),
                uint32_t(address >> 32));
    f->identity = new_identity();
    all_.emplace_back(f);
  }
  for (uint32_t i = 0; i < count; i++) all_[i]->ended = false;
}

bool fibers::resume(uint32_t i) {
  fiber& f = *all_[i];
  current_ = &f;
  leave_stack(&scheduler_fake_, f.stack + guard_bytes, stack_bytes);
  become(f.identity);
  swapcontext(&scheduler_, &f.context);
  reach_stack(scheduler_fake_, nullptr, nullptr);
  return f.ended;
}

void fibers::give_way() {
  fiber& f = *current_;
  leave_stack(&f.fake, scheduler_stack_, scheduler_bytes_);
  become(scheduler_tsan_);
  swapcontext(&f.context, &scheduler_);
  reach_stack(f.fake, &scheduler_stack_, &scheduler_bytes_);
}

}  // namespace lethe::emulated
