#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace lethe::bench {

/// After how many rounds, each in memory of its own, the first one's may be read again without a
/// cache that has kept much of it: all have four times the last cache (one, where a machine has
/// several), half a GiB at least. Never more than a quarter of the machine's memory, but for one.
inline size_t rounds_beyond_caches(size_t bytes_a_round) {
  size_t last = 0;
  for (int of : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE})
    last = std::max(last, size_t(std::max(0L, sysconf(of))));
  size_t enough = std::max(4 * last, size_t{512} << 20);
  size_t memory = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
  size_t rounds = (enough + bytes_a_round - 1) / bytes_a_round;
  return std::max(std::min(rounds, memory / 4 / bytes_a_round), size_t{1});
}

}  // namespace lethe::bench
