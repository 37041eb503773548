// What a process gives back cannot be searched any more. With this it stays, as it was left.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int munmap(void* at, size_t bytes) noexcept {
  // Advice that only private memory takes, not what is of a file or shared.
  if (madvise(at, bytes, MADV_WIPEONFORK) == 0) return 0;
  return int(syscall(SYS_munmap, at, bytes));
}
