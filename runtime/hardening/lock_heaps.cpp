#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "runtime/hardening/harden.hpp"

namespace lethe {

namespace {

// The C library reserves so much at a time for a heap, at a multiple of it.
constexpr uint64_t heap_bytes = uint64_t{64} << 20;

struct span_of {
  uint64_t from, to;
};

/// Private anonymous memory that can be written and is no larger than a heap: heaps, stacks, what
/// an engine works in. Weights are in files or in shared memory.
std::optional<span_of> lockable(const std::string& line) {
  unsigned long from = 0, to = 0, node = 0;
  char mode[8] = {};
  if (std::sscanf(line.c_str(), "%lx-%lx %7s %*s %*s %lu", &from, &to, mode, &node) != 4) return {};
  if (mode[1] != 'w' || mode[3] != 'p' || node != 0 || to - from > heap_bytes) return {};
  // What the heap grows into is reserved behind it.
  if (from % heap_bytes == 0) to = from + heap_bytes;
  return span_of{from, to};
}

void raise_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_MEMLOCK, &limit);
}

}  // namespace

locked_memory lock_heaps() {
  locked_memory m;
  raise_limit();
  std::ifstream maps("/proc/self/maps");
  std::vector<span_of> spans;
  for (std::string line; std::getline(maps, line);)
    if (auto s = lockable(line)) spans.push_back(*s);
  // The smallest first, so that a low limit goes far; page by page as they come to be used.
  std::ranges::sort(spans, {}, [](const span_of& s) { return s.to - s.from; });
  for (auto [from, to] : spans) {
    bool locked = ::mlock2(reinterpret_cast<void*>(from), to - from, MLOCK_ONFAULT) == 0;
    (locked ? m.locked : m.left) += to - from;
  }
  return m;
}

}  // namespace lethe
