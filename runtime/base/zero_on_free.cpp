// The second fence behind the arenas: whatever code of whichever library gives back to the heap
// is zeroed first. docs/decisions/0002-zero-on-free.md says why it is done this way.
#include "runtime/base/zero_on_free.hpp"

#ifdef LETHE_SANITIZED

// Sanitizers bring their own allocator.
bool lethe::zeroes_what_it_frees() noexcept { return false; }

#else

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/base/wipe.hpp"

// glibc's own names for what we stand in front of.
extern "C" void* __libc_malloc(size_t bytes);
extern "C" void* __libc_realloc(void* at, size_t bytes);
extern "C" void __libc_free(void* at);

namespace {

constexpr size_t page_bytes = 4096;
constexpr size_t large_bytes = size_t{1} << 20;

/// Wipes the pages that are in memory: a large block that was never touched has no pages, and
/// writing zeroes would give it some, up to gigabytes just before the end.
void wipe_resident(char* at, size_t bytes) noexcept {
  unsigned char resident[1024];
  char* end = at + bytes;
  while (at < end) {
    auto* page = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(at) & ~(page_bytes - 1));
    size_t span = std::min(size_t(end - page), sizeof resident * page_bytes);
    if (mincore(page, span, resident) != 0) std::memset(resident, 1, sizeof resident);
    for (size_t i = 0; page + i * page_bytes < page + span; ++i) {
      char* from = std::max(at, page + i * page_bytes);
      char* to = std::min(page + (i + 1) * page_bytes, end);
      if (resident[i] & 1) lethe::wipe(from, size_t(to - from));
    }
    at = page + span;
  }
}

void wipe_block(void* at, size_t from) noexcept {
  size_t usable = malloc_usable_size(at);
  if (from >= usable) return;
  char* begin = static_cast<char*>(at) + from;
  if (usable - from < large_bytes) return lethe::wipe(begin, usable - from);
  int before = errno;
  wipe_resident(begin, usable - from);
  errno = before;
}

}  // namespace

// operator delete, fclose, freeaddrinfo, ...: all end in a call of `free` that this one answers.
extern "C" void free(void* at) noexcept {
  if (at == nullptr) return;
  wipe_block(at, 0);
  __libc_free(at);
}

extern "C" void* realloc(void* at, size_t bytes) noexcept {
  if (at == nullptr) return __libc_malloc(bytes);
  if (bytes == 0) {  // as glibc does
    free(at);
    return nullptr;
  }
  size_t usable = malloc_usable_size(at);
  if (bytes <= usable) {
    wipe_block(at, bytes);
    return __libc_realloc(at, bytes);  // in place: it never moves what shrinks
  }
  // glibc's own would copy and free the old block without us.
  void* to = __libc_malloc(bytes);
  if (to == nullptr) return nullptr;
  std::memcpy(to, at, usable);
  free(at);
  return to;
}

extern "C" void* reallocarray(void* at, size_t count, size_t each) noexcept {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(at, bytes);
}

bool lethe::zeroes_what_it_frees() noexcept {
  return dlsym(RTLD_DEFAULT, "free") == reinterpret_cast<void*>(&free);
}

#endif
