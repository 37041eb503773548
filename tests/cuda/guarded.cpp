#include "tests/cuda/guarded.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace lethe::emulated {
namespace {

constexpr size_t page = 4096;
constexpr std::byte before{0xa5};

size_t whole_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

void* take(size_t bytes) {
  size_t inner = whole_pages(bytes);
  void* all = mmap(nullptr, inner + 2 * page, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) std::abort();
  auto* begin = static_cast<std::byte*>(all) + page;
  if (inner != 0 && mprotect(begin, inner, PROT_READ | PROT_WRITE) != 0) std::abort();
  std::fill_n(begin, inner - bytes, before);
  return begin + (inner - bytes);
}

void give(void* p, size_t bytes) {
  size_t inner = whole_pages(bytes);
  auto* begin = static_cast<std::byte*>(p) - (inner - bytes);
  bool kept =
      std::all_of(begin, static_cast<std::byte*>(p), [](std::byte b) { return b == before; });
  if (!kept) std::abort();
  munmap(begin - page, inner + 2 * page);
}

void copy(void* to, const void* from, size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace lethe::emulated
