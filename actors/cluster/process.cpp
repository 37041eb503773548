#include "actors/cluster/process.hpp"

#include <unistd.h>

#include <cstdio>

namespace lethe {

uint64_t resident_bytes() {
  std::FILE* f = std::fopen("/proc/self/statm", "re");
  if (!f) return 0;
  unsigned long long all = 0, resident = 0;
  int got = std::fscanf(f, "%llu %llu", &all, &resident);
  std::fclose(f);
  return got == 2 ? resident * uint64_t(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace lethe
