#include "tests/cuda/fibers.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

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

// swapcontext asks the kernel for the signal mask, twice a switch, which takes longer than all the
// rest. As the ABI has it, a function keeps six registers and its stack.
extern "C" void lethe_fiber_switch(void** own, void* other);
extern "C" void lethe_fiber_begin();
asm(R"(
  .text
  .type lethe_fiber_switch, @function
lethe_fiber_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
  .size lethe_fiber_switch, . - lethe_fiber_switch
  .type lethe_fiber_begin, @function
lethe_fiber_begin:
  mov %rbx, %rdi
  jmp *%rbp
  .size lethe_fiber_begin, . - lethe_fiber_begin
)");

/// A stack whose first switch calls f(argument), which does not return.
void* begun_stack(std::byte* end, void (*f)(void*), void* argument) {
  void* first[] = {nullptr,  // r15 to r12, rbx, rbp, whither, and whence f was called
                   nullptr,
                   nullptr,
                   nullptr,
                   argument,
                   reinterpret_cast<void*>(f),
                   reinterpret_cast<void*>(lethe_fiber_begin),
                   nullptr};
  return std::memcpy(end - sizeof first, first, sizeof first);
}

}  // namespace

struct fibers::fiber {
  fibers* home;
  uint32_t number;
  std::byte* stack;
  void* at;  // its stack, while it sleeps
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

void fibers::enter(void* one) {
  auto* f = static_cast<fiber*>(one);
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
    f->at = begun_stack(f->stack + guard_bytes + stack_bytes, enter, f);
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
  lethe_fiber_switch(&scheduler_, f.at);
  reach_stack(scheduler_fake_, nullptr, nullptr);
  return f.ended;
}

void fibers::give_way() {
  fiber& f = *current_;
  leave_stack(&f.fake, scheduler_stack_, scheduler_bytes_);
  become(scheduler_tsan_);
  lethe_fiber_switch(&f.at, scheduler_);
  reach_stack(f.fake, &scheduler_stack_, &scheduler_bytes_);
}

}  // namespace lethe::emulated
