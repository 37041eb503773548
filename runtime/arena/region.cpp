#include "runtime/arena/region.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "runtime/base/check.hpp"
#include "runtime/base/wipe.hpp"

namespace lethe {
namespace {

constexpr size_t page_bytes = 4096;
// Committed ahead: little for a small request, then a growing part of what it has, so that a
// request of gigabytes does not make a system call for every few pages.
constexpr size_t commit_min = size_t{64} << 10;
constexpr size_t commit_max = size_t{4} << 20;

constexpr size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) & ~(to - 1); }

static_assert(sizeof(arena_region) <= page_bytes);

error refused(size_t reserve_bytes, const char* what) {
  return fail("arena: cannot {} {} bytes: {}", what, reserve_bytes, std::strerror(errno));
}

/// Access is granted by commit. False: errno says why.
bool map_data(std::byte* data, size_t bytes, int fd) {
  if (fd < 0) return madvise(data, bytes, MADV_WIPEONFORK) == 0;
  if (ftruncate(fd, off_t(bytes)) != 0) return false;
  void* at = mmap(data, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
  return at != MAP_FAILED;
}

}  // namespace

result<arena_region*> arena_region::map(int fd, size_t reserve_bytes) {
  if (reserve_bytes == 0 || reserve_bytes > arena_reserve_max)
    return fail("arena: a reserve of {} bytes; 1 to {} are possible", reserve_bytes,
                arena_reserve_max);
  check(sysconf(_SC_PAGESIZE) == long(page_bytes));
  size_t reserved = round_up(reserve_bytes, page_bytes);
  size_t whole = reserved + 3 * page_bytes;
  void* at = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return refused(reserve_bytes, "reserve");
  auto* begin = static_cast<std::byte*>(at);
  auto* data = begin + 2 * page_bytes;
  bool mapped = map_data(data, reserved, fd) && madvise(begin, whole, MADV_DONTDUMP) == 0 &&
                mprotect(begin, page_bytes, PROT_READ | PROT_WRITE) == 0;
  if (!mapped) {
    error why = refused(reserve_bytes, "map");
    munmap(begin, whole);
    return why;
  }
  return new (begin) arena_region(data, reserved, fd);
}

arena_region::arena_region(std::byte* data, size_t reserved, int fd) noexcept
    : data_(data), reserved_(reserved), shared_(fd >= 0) {}

arena_report arena_region::end() noexcept {
  auto start = std::chrono::steady_clock::now();
  size_t bytes = round_up(touched_, page_bytes);
  wipe(data_, bytes);
  auto* begin = reinterpret_cast<std::byte*>(this);
  size_t whole = reserved_ + 3 * page_bytes;
  this->~arena_region();
  check(munmap(begin, whole) == 0);
  auto took = std::chrono::steady_clock::now() - start;
  return {bytes, uint64_t(std::chrono::nanoseconds(took).count())};
}

void* arena_region::take(size_t bytes, size_t align) noexcept {
  check(align > 0 && (align & (align - 1)) == 0 && align <= page_bytes);
  bytes = std::max(bytes, size_t{1});  // as operator new: no two blocks at one address
  size_t first = round_up(used_, align);
  if (first > reserved_ || bytes > reserved_ - first) return nullptr;
  if (first + bytes > committed_ && !commit(first + bytes)) return nullptr;
  used_ = first + bytes;
  touched_ = std::max(touched_, used_);
  return data_ + first;
}

/// Grows the accessible part to at least `bytes`.
bool arena_region::commit(size_t bytes) noexcept {
  size_t ahead = std::clamp(committed_, commit_min, commit_max);
  size_t to = std::min(reserved_, std::max(round_up(bytes, page_bytes), committed_ + ahead));
  std::byte* from = data_ + committed_;
  size_t more = to - committed_;
  if (mprotect(from, more, PROT_READ | PROT_WRITE) != 0) return false;
  // Best effort, and asked once: past the limit every further call would fail, too.
  locked_ = locked_ && mlock(from, more) == 0;
  committed_ = to;
  return true;
}

}  // namespace lethe
