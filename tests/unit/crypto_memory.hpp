#pragma once

#include <cstdio>

#include "crypto_samples.hpp"

/// Looks for secrets in all of the process's memory.
namespace lethe::test {

/// A secret as the search knows it: inverted, so that the search does not find itself.
class needle {
 public:
  explicit needle(bytes_view secret) {
    for (std::byte b : secret) inverted_.push_back(~b);
  }
  size_t count_in(const volatile std::byte* from, const volatile std::byte* to) const {
    const std::byte first = ~inverted_[0];
    size_t found = 0;
    for (auto at = from; at + inverted_.size() <= to; ++at) {
      if (*at != first) continue;
      size_t same = 1;
      while (same < inverted_.size() && at[same] == ~inverted_[same]) ++same;
      found += same == inverted_.size();
    }
    return found;
  }

 private:
  bytes inverted_;
};

struct writable {
  uintptr_t from, to;
};

/// Heap, stacks and whatever else is private and writable, libraries' data included.
inline std::vector<writable> writable_memory() {
  std::vector<writable> ranges;
  FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (std::fgets(line, sizeof line, maps)) {
    writable r;
    char mode[8];
    if (std::sscanf(line, "%lx-%lx %7s", &r.from, &r.to, mode) == 3 &&
        std::string_view(mode) == "rw-p")
      ranges.push_back(r);
  }
  std::fclose(maps);
  return ranges;
}

[[gnu::noinline]] inline size_t count_everywhere(const needle& n) {
  size_t found = 0;
  for (const writable& r : writable_memory())
    found += n.count_in(reinterpret_cast<const volatile std::byte*>(r.from),
                        reinterpret_cast<const volatile std::byte*>(r.to));
  return found;
}

struct named_needle {
  const char* name;
  needle value;
};

class memory_search : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(LETHE_SANITIZED)
    GTEST_SKIP() << "the sanitizers' shadow memory is too large to search";
#endif
  }
};

}  // namespace lethe::test
