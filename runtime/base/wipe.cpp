#include "runtime/base/wipe.hpp"

#include <cstring>

namespace lethe {

void wipe(void* at, size_t bytes) noexcept {
  if (bytes == 0) return;  // `at` may be null then
  std::memset(at, 0, bytes);
  // The compiler must believe that someone reads the zeroes.
  asm volatile("" : : "r"(at) : "memory");
}

}  // namespace lethe
