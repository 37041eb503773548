#include "runtime/base/wipe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace lethe {
namespace {

TEST(Wipe, ZeroesExactlyWhatItWasGiven) {
  for (size_t bytes : {0, 1, 7, 64, 4095, 4096, 1 << 20, (1 << 22) + 17, (1 << 25) + 3})
    for (size_t from : {0, 1, 15, 63}) {
      std::vector<char> memory(from + bytes + 64, 'x');
      wipe(memory.data() + from, bytes);
      auto is = [](char what) { return [what](char c) { return c == what; }; };
      EXPECT_TRUE(std::all_of(memory.begin(), memory.begin() + from, is('x')));
      EXPECT_TRUE(std::all_of(memory.begin() + from, memory.end() - 64, is(0))) << bytes;
      EXPECT_TRUE(std::all_of(memory.end() - 64, memory.end(), is('x')));
    }
  wipe(nullptr, 0);
}

// What stays on a stack frame that is gone. Both frames have the same shape, so the later call
// finds what the earlier one left.
template <bool wiped>
[[gnu::noinline]] uintptr_t leave(size_t bytes) {
  char key[4096];
  std::memset(key, 0x5a, bytes);
  asm volatile("" : : "r"(key) : "memory");
  if constexpr (wiped)
    wipe(key, bytes);
  else
    std::memset(key, 0, bytes);  // dead: the compiler drops it
  return reinterpret_cast<uintptr_t>(key);
}

size_t left_at(uintptr_t at) {
  size_t found = 0;
  for (size_t i = 0; i < 2048; ++i)
    found += reinterpret_cast<volatile unsigned char*>(at)[2048 + i] == 0x5a;
  return found;
}

TEST(Wipe, IsNotDroppedWhereMemsetIs) {
#if defined(LETHE_SANITIZED) || !defined(__OPTIMIZE__)
  GTEST_SKIP() << "dead stores are dropped, and dead frames readable, in optimized builds only";
#endif
  EXPECT_EQ(left_at(leave<true>(4096)), 0u);
  EXPECT_GT(left_at(leave<false>(4096)), 1000u) << "the negative control";
}

}  // namespace
}  // namespace lethe
