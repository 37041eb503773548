#include "parallel/region.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace lethe {
namespace {

constexpr size_t guard = 4096;

}  // namespace

result<region> region::map(size_t bytes, const char* what) {
  size_t inner = (bytes + guard - 1) / guard * guard;
  if (inner < bytes || inner + 2 * guard < inner)
    return fail("shard: {} would need {} bytes; lower pages or step tokens", what, bytes);
  void* whole = mmap(nullptr, inner + 2 * guard, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED)
    return fail("shard: cannot map {} bytes for {}: {}; lower pages or step tokens", bytes, what,
                std::strerror(errno));
  region r;
  r.at_ = static_cast<std::byte*>(whole) + guard;
  r.bytes_ = inner;
  if (inner == 0) return r;
  if (mprotect(r.at_, inner, PROT_READ | PROT_WRITE) != 0)
    return fail("shard: cannot use {} bytes for {}: {}; lower pages or step tokens", bytes, what,
                std::strerror(errno));
  madvise(r.at_, inner, MADV_DONTDUMP);
  madvise(r.at_, inner, MADV_WIPEONFORK);
  // Keys and values lie far apart: fewer TLB misses. Where the kernel refuses, nothing is lost.
  madvise(r.at_, inner, MADV_HUGEPAGE);
  return r;
}

region& region::operator=(region&& o) noexcept {
  std::swap(at_, o.at_);
  std::swap(bytes_, o.bytes_);
  return *this;
}

region::~region() {
  if (at_ != nullptr) munmap(at_ - guard, bytes_ + 2 * guard);
}

}  // namespace lethe
