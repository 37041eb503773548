// What is a request's own lies beside its arena, in memory that nobody destroys.
#include <sys/mman.h>

#include <atomic>

#include "runtime/arena/region.hpp"
#include "runtime/base/check.hpp"

namespace {

constexpr size_t pool_bytes = size_t{256} << 20;

std::byte* pool() {
  static void* const at =
      ::mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  lethe::check(at != MAP_FAILED);
  return static_cast<std::byte*>(at);
}

}  // namespace

void* lethe::arena_region::do_allocate(size_t bytes, size_t align) {
  static std::atomic<size_t> used = 0;
  const size_t at = used.fetch_add(bytes + align);
  check(at + bytes + align <= pool_bytes);
  return pool() + (at + align - 1) / align * align;
}

void lethe::arena_region::do_deallocate(void*, size_t, size_t) {}
