#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace lethe::bench {

/// Bytes of which no cache keeps much until they are read again: four times the last cache, half a
/// GiB at least, a quarter of the machine's memory at most.
inline size_t beyond_caches() {
  size_t last = 0;
  for (int of : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE})
    last = std::max(last, size_t(std::max(0L, sysconf(of))));
  size_t memory = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
  return std::min(std::max(4 * last, size_t{512} << 20), memory / 4);
}

}  // namespace lethe::bench
