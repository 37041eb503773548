#include <algorithm>
#include <new>

#include "runtime/arena/region.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/wipe.hpp"

// What containers ask of an arena. A file of its own: an audit's control links another.
namespace lethe {

void* arena_region::do_allocate(size_t bytes, size_t align) {
  void* at = take(bytes, align);
  if (at == nullptr) throw std::bad_alloc();  // what a memory_resource must do
  return at;
}

void arena_region::do_deallocate(void* at, size_t bytes, size_t) {
  auto* block = static_cast<std::byte*>(at);
  bytes = std::max(bytes, size_t{1});
  check(block >= data_ && size_t(block - data_) + bytes <= used_);
  if (block + bytes != data_ + used_) return;
  wipe(block, bytes);
  used_ = size_t(block - data_);
}

}  // namespace lethe
