#include "runtime/base/zero_on_free.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

extern "C" void __libc_free(void* at);

namespace lethe {
namespace {

// The canary, built so that no copy of it lies in the program's own data: byte i is i * 37 + 11.
constexpr size_t canary_bytes = 24;
char canary_at(size_t i) { return char(i % canary_bytes * 37 + 11); }

void fill(void* at, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) static_cast<char*>(at)[i] = canary_at(i);
}

/// The compiler would drop a malloc whose block is only freed.
void take_and_free(size_t bytes) {
  void* volatile at = std::malloc(bytes);
  std::free(at);
}

/// How often the canary lies in [from, to).
size_t found_in(const char* from, const char* to) {
  size_t found = 0;
  for (const char* at = from; at + canary_bytes <= to; ++at) {
    size_t same = 0;
    while (same < canary_bytes && at[same] == canary_at(same)) ++same;
    found += same == canary_bytes;
  }
  return found;
}

/// How often the canary lies in the heap: brk's and the thread arenas' memory, and whatever
/// else is private, writable and anonymous. Stacks are not the heap.
size_t found_in_heap() {
  FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  size_t found = 0;
  std::vector<std::pair<uintptr_t, uintptr_t>> ranges;
  while (std::fgets(line, sizeof line, maps)) {
    uintptr_t from, to;
    char mode[8], name[256] = {};
    int fields = std::sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &from, &to, mode, name);
    bool heap = fields == 3 || std::strcmp(name, "[heap]") == 0;
    if (heap && mode[0] == 'r' && mode[1] == 'w') ranges.emplace_back(from, to);
  }
  std::fclose(maps);
  auto here = reinterpret_cast<uintptr_t>(&found);
  for (auto [from, to] : ranges)
    if (here < from || here >= to)
      found += found_in(reinterpret_cast<char*>(from), reinterpret_cast<char*>(to));
  return found;
}

class ZeroOnFree : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!zeroes_what_it_frees()) {
#ifdef LETHE_SANITIZED
      GTEST_SKIP() << "zero-on-free is compiled out: sanitizers bring their own allocator";
#endif
      FAIL() << "lethe_zero_on_free is linked, and free is another's";
    }
    ASSERT_EQ(found_in_heap(), 0u) << "left by an earlier test";
  }
};

TEST_F(ZeroOnFree, LeavesNothingOfAFreedBlock) {
  for (size_t bytes : {48, 100, 1000, 5000, 100'000}) {
    void* at = std::malloc(bytes);
    fill(at, bytes);
    EXPECT_GT(found_in_heap(), 0u);
    std::free(at);
    EXPECT_EQ(found_in_heap(), 0u) << bytes;
  }
}

TEST_F(ZeroOnFree, IsNeededBecauseTheHeapRemembers) {  // the negative control: without the fence
  constexpr size_t bytes = 1000;
  void* at = std::malloc(bytes);
  fill(at, bytes);
  __libc_free(at);
  EXPECT_GT(found_in_heap(), 0u);
  void* again = std::malloc(bytes);  // the same block: take it out of circulation, wiped
  EXPECT_EQ(again, at);
  std::free(again);
  EXPECT_EQ(found_in_heap(), 0u);
}

TEST_F(ZeroOnFree, WipesWhatReallocLeavesBehind) {
  for (auto [from, to] : {std::pair<size_t, size_t>{200, 5000},
                          {5000, 400},
                          {900, 900'000},
                          {900'000, 3'000'000},
                          {3'000'000, 100}}) {
    void* at = std::malloc(from);
    std::memset(at, 0, from);
    fill(static_cast<char*>(at) + 120, 48);  // two canaries, and where they were cut off none
    if (to < from) fill(static_cast<char*>(at) + from - 48, 48);
    void* blocker = std::malloc(64);  // no growth in place
    at = std::realloc(at, to);
    ASSERT_NE(at, nullptr);
    size_t kept = found_in(static_cast<char*>(at), static_cast<char*>(at) + to);
    EXPECT_EQ(kept, to >= 168 ? 2u : 0u);
    EXPECT_EQ(found_in_heap(), kept) << from << " to " << to;
    std::free(at);
    std::free(blocker);
    EXPECT_EQ(found_in_heap(), 0u);
  }
}

TEST_F(ZeroOnFree, CoversWhatContainersLeave) {
  std::vector<char> grown;
  for (size_t i = 0; i < 100 * canary_bytes; ++i) grown.push_back(canary_at(i));
  EXPECT_EQ(found_in_heap(), 100u) << "one copy: those of before each growth are wiped";
  std::vector<char>().swap(grown);  // `= {}` keeps the block
  std::list<std::string> texts;
  std::unordered_map<int, std::string> by_number;
  auto stream = std::make_unique<std::stringstream>();
  for (int i = 0; i < 50; ++i) {
    texts.emplace_back();
    for (size_t k = 0; k < 200; ++k) texts.back().push_back(canary_at(k));
    by_number[i] = texts.back();
    *stream << texts.back();
  }
  EXPECT_GT(found_in_heap(), 50u * 8);
  texts.clear(), by_number.clear();
  stream.reset();
  EXPECT_EQ(found_in_heap(), 0u);
}

TEST_F(ZeroOnFree, CoversAlignedMemoryAndEveryDelete) {
  struct alignas(128) wide {
    char bytes[512];
  };
  auto one = std::make_unique<wide>();
  auto many = std::make_unique<wide[]>(10);
  fill(&one->bytes, 512), fill(many[9].bytes, 512);
  void *a = nullptr, *b = std::aligned_alloc(4096, 8192), *c = memalign(64, 999);
  ASSERT_EQ(posix_memalign(&a, 256, 700), 0);
  fill(a, 700), fill(b, 8192), fill(c, 999);
  EXPECT_GT(found_in_heap(), 400u);
  one.reset(), many.reset();
  std::free(a), std::free(b), std::free(c);
  EXPECT_EQ(found_in_heap(), 0u);
}

TEST_F(ZeroOnFree, CoversTheLibrariesOwnCalls) {  // buffers that glibc allocates and frees
  char* text = nullptr;
  size_t bytes = 0;
  FILE* memory = open_memstream(&text, &bytes);
  for (size_t i = 0; i < 5000; ++i) std::fputc(canary_at(i), memory);
  std::fclose(memory);
  std::free(text);
  EXPECT_EQ(found_in_heap(), 0u);
}

TEST_F(ZeroOnFree, WipesLargeBlocksThatStayInTheHeap) {
  // Blocks of this size would be unmapped, and nothing left to search.
  ASSERT_EQ(mallopt(M_MMAP_THRESHOLD, 32 << 20), 1);
  ASSERT_EQ(mallopt(M_TRIM_THRESHOLD, 64 << 20), 1);
  constexpr size_t bytes = (size_t{9} << 20) + 123;
  for (bool fenced : {true, false}) {
    char* at = static_cast<char*>(std::malloc(bytes));
    std::memset(at, 0, bytes);
    fill(at + 16, canary_bytes);
    fill(at + 5'000'000, 200'000);
    fill(at + bytes - canary_bytes, canary_bytes);
    fenced ? std::free(at) : __libc_free(at);
    EXPECT_EQ(found_in_heap() == 0, fenced);
    take_and_free(bytes);
  }
}

size_t peak_resident_kb() {
  char line[256];
  size_t kb = 0;
  FILE* status = std::fopen("/proc/self/status", "r");
  while (std::fgets(line, sizeof line, status)) std::sscanf(line, "VmHWM: %zu kB", &kb);
  std::fclose(status);
  return kb;
}

TEST_F(ZeroOnFree, DoesNotTouchPagesThatNobodyTouched) {
  size_t before_kb = peak_resident_kb();
  void* at = std::malloc(size_t{2} << 30);
  ASSERT_NE(at, nullptr);
  static_cast<char*>(at)[12345] = 1;
  std::free(at);
  EXPECT_LT(peak_resident_kb(), before_kb + 64 * 1024);
}

TEST_F(ZeroOnFree, KeepsWhatTheStandardSays) {
  errno = 77;
  std::free(nullptr);
  take_and_free(10);
  take_and_free(5'000'000);
  EXPECT_EQ(errno, 77);
  void* from_null = std::realloc(nullptr, 100);
  ASSERT_NE(from_null, nullptr);
  std::memset(from_null, 'a', 100);
  volatile size_t too_much = SIZE_MAX / 2;
  EXPECT_EQ(std::realloc(from_null, too_much), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(static_cast<char*>(from_null)[99], 'a') << "a failed realloc leaves the block";
  errno = 0;
  EXPECT_EQ(reallocarray(from_null, too_much, 4), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  from_null = reallocarray(from_null, 300, 100);
  EXPECT_EQ(static_cast<char*>(from_null)[99], 'a');
  EXPECT_EQ(std::realloc(from_null, 0), nullptr);
}

TEST_F(ZeroOnFree, HoldsUpWithThreadsThatFreeEachOthersBlocks) {
  constexpr size_t threads = 4, slots = 64;
  std::atomic<char*> shared[slots] = {};
  std::vector<std::thread> team;
  std::atomic<uint32_t> broken{0};
  for (size_t t = 0; t < threads; ++t)
    team.emplace_back([&shared, &broken, t] {
      std::minstd_rand dice(uint32_t(t + 1));
      for (int i = 0; i < 20000; ++i) {
        size_t bytes = 64 + dice() % 3000;
        char* mine = static_cast<char*>(std::malloc(bytes));
        fill(mine, 64);
        if (dice() % 2) mine = static_cast<char*>(std::realloc(mine, 64 + dice() % 9000));
        char* other = shared[dice() % slots].exchange(mine);
        if (other && found_in(other, other + 64) != 2) ++broken;
        std::free(other);
      }
    });
  for (auto& t : team) t.join();
  for (auto& s : shared) std::free(s.load());
  EXPECT_EQ(broken, 0u);
  EXPECT_EQ(found_in_heap(), 0u);
}

}  // namespace
}  // namespace lethe
