#include "runtime/arena/arena.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lethe {
namespace {

static_assert(!std::is_copy_constructible_v<arena> && !std::is_copy_assignable_v<arena>);
static_assert(std::is_nothrow_move_constructible_v<arena>);

constexpr size_t page = 4096;
constexpr std::string_view secret = "the-canary-of-this-test";

arena make(size_t bytes) {
  auto made = arena::make(bytes);
  if (!made) ADD_FAILURE() << made.why().text;
  return *std::move(made);
}

/// A second mapping of the arena's memory, which outlives it.
class witness {
 public:
  explicit witness(size_t bytes) : fd_(memfd_create("arena", MFD_CLOEXEC)), bytes_(bytes) {
    if (ftruncate(fd_, off_t(bytes)) != 0) ADD_FAILURE();
    at_ = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_, 0);
  }
  ~witness() { munmap(at_, bytes_), close(fd_); }
  int fd() const { return fd_; }
  std::string_view sees() const { return {static_cast<const char*>(at_), bytes_}; }
  bool sees_secret() const { return sees().find(secret) != std::string_view::npos; }
  bool sees_zeroes() const { return sees().find_first_not_of('\0') == std::string_view::npos; }

 private:
  int fd_;
  size_t bytes_;
  void* at_;
};

void fill_with_secrets(arena& a) {
  std::pmr::vector<std::pmr::string> texts(a.resource());
  for (int i = 0; i < 500; ++i) texts.emplace_back(std::string(secret) + std::to_string(i));
}

TEST(Arena, IsZeroBeforeItsMemoryIsGivenBack) {
  witness w(1 << 20);
  auto made = arena::make_shared(w.fd(), 1 << 20);
  ASSERT_TRUE(made) << made.why().text;
  fill_with_secrets(*made);
  EXPECT_TRUE(w.sees_secret());
  arena_report report = made->destroy();
  EXPECT_TRUE(w.sees_zeroes());
  EXPECT_GE(report.bytes, 500 * secret.size());
  EXPECT_EQ(report.bytes % page, 0u);
  EXPECT_GT(report.nanoseconds, 0u);
}

TEST(Arena, IsFoundByTheSameSearchWhenOnlyUnmapped) {  // the negative control of the test above
  witness w(1 << 20);
  void* at = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd(), 0);
  std::memcpy(at, secret.data(), secret.size());
  munmap(at, 1 << 20);
  EXPECT_TRUE(w.sees_secret());
  EXPECT_FALSE(w.sees_zeroes());
}

TEST(Arena, IsWipedByItsDestructorAndByAssignment) {
  witness w(1 << 20), v(1 << 20);
  {
    auto made = arena::make_shared(w.fd(), 1 << 20);
    fill_with_secrets(*made);
    EXPECT_TRUE(w.sees_secret());
  }
  EXPECT_TRUE(w.sees_zeroes());
  auto first = arena::make_shared(v.fd(), 1 << 20);
  fill_with_secrets(*first);
  *first = make(page);
  EXPECT_TRUE(v.sees_zeroes());
  EXPECT_EQ(first->reserved(), page);
}

TEST(Arena, WipesWhatWasTouchedAndNoMore) {
  arena a = make(size_t{1} << 30);
  ASSERT_NE(a.take(10 * page), nullptr);
  EXPECT_EQ(a.destroy().bytes, 10 * page);
}

TEST(Arena, GivesBackTheLastBlockOnlyAndWipesIt) {
  witness w(1 << 16);
  auto a = arena::make_shared(w.fd(), 1 << 16);
  auto* r = a->resource();
  void* first = r->allocate(64, 8);
  void* last = r->allocate(64, 8);
  std::memcpy(first, secret.data(), secret.size());
  std::memcpy(last, secret.data(), secret.size());
  r->deallocate(first, 64, 8);
  EXPECT_TRUE(w.sees_secret());
  EXPECT_EQ(a->used(), 128u);
  std::memset(first, 0, 64);
  EXPECT_TRUE(w.sees_secret());
  r->deallocate(last, 64, 8);
  EXPECT_TRUE(w.sees_zeroes());
  EXPECT_EQ(a->used(), 64u);
  EXPECT_EQ(r->allocate(64, 8), last);
}

TEST(Arena, GivesUpExactlyItsReserve) {
  for (size_t bytes : {page, 2 * page, size_t{1} << 20}) {
    arena exact = make(bytes);
    EXPECT_NE(exact.take(bytes, 1), nullptr);
    EXPECT_EQ(exact.take(1, 1), nullptr);
    arena below = make(bytes);
    EXPECT_NE(below.take(bytes - 1, 1), nullptr);
    EXPECT_NE(below.take(1, 1), nullptr);
    EXPECT_EQ(below.take(1, 1), nullptr);
    arena above = make(bytes);
    EXPECT_EQ(above.take(bytes + 1, 1), nullptr);
    EXPECT_EQ(above.take(SIZE_MAX, 1), nullptr);
    EXPECT_THROW((void)above.resource()->allocate(bytes + 1, 1), std::bad_alloc);
    EXPECT_NE(above.take(bytes, page), nullptr) << "a refusal costs nothing";
  }
}

TEST(Arena, RefusesImpossibleReserves) {
  EXPECT_FALSE(arena::make(0));
  EXPECT_TRUE(arena::make(1));
  EXPECT_TRUE(arena::make(arena_reserve_max - page));
  EXPECT_TRUE(arena::make(arena_reserve_max));
  EXPECT_FALSE(arena::make(arena_reserve_max + 1));
  EXPECT_FALSE(arena::make(SIZE_MAX));
  EXPECT_FALSE(arena::make_shared(-1, page));
}

TEST(Arena, AlignsAndNeverOverlaps) {
  arena a = make(1 << 20);
  std::byte* before = nullptr;
  for (size_t align = 1; align <= page; align *= 2)
    for (size_t bytes : {0, 1, 7, 100}) {
      auto* at = static_cast<std::byte*>(a.take(bytes, align));
      ASSERT_NE(at, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % align, 0u);
      EXPECT_TRUE(before == nullptr || at > before);
      before = at + (bytes ? bytes - 1 : 0);
    }
}

TEST(Arena, GrowsInPlaceAndHandsOutZeroes) {
  arena a = make(size_t{1} << 30);
  auto* first = static_cast<char*>(a.take(1, 1));
  EXPECT_LT(a.committed(), size_t{1} << 20);
  for (size_t i = 1; i < 64; ++i) {
    auto* at = static_cast<char*>(a.take(1 << 20, 1));
    ASSERT_EQ(at, first + 1 + ((i - 1) << 20));
    EXPECT_EQ(at[0] | at[(1 << 20) - 1], 0);
    at[(1 << 20) - 1] = 1;
  }
  EXPECT_LE(a.committed(), size_t{70} << 20);
}

TEST(Arena, StaysWhereItIsWhenItsHandleMoves) {
  arena a = make(1 << 20), b = make(page);
  std::pmr::vector<int> numbers({1, 2, 3}, a.resource());
  b = std::move(a);
  numbers.insert(numbers.end(), 100, 4);
  EXPECT_EQ(numbers[2], 3);
  EXPECT_EQ(numbers.get_allocator().resource(), b.resource());
}

TEST(Arena, CountsTheLivingAndTheWiped) {
  arena_totals before = count_arenas();
  {
    arena a = make(page), b = make(page);
    a.take(1);
    arena c = std::move(a);
    EXPECT_EQ(count_arenas().alive, before.alive + 2);
  }
  EXPECT_EQ(count_arenas().alive, before.alive);
  EXPECT_EQ(count_arenas().destroyed, before.destroyed + 2);
  EXPECT_EQ(count_arenas().bytes_wiped, before.bytes_wiped + page);
}

/// Runs `child` in a fork; its exit code.
template <class F>
int in_child(F child) {
  pid_t pid = fork();
  if (pid == 0) _exit(child());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Arena, IsZeroInAChild) {
  arena a = make(1 << 20);
  auto* at = static_cast<char*>(a.take(64));
  at[0] = 'x';
  auto* plain = static_cast<char*>(
      mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  plain[0] = 'x';
  EXPECT_EQ(in_child([at] { return int(at[0]); }), 0);
  EXPECT_EQ(in_child([plain] { return int(plain[0]); }), 'x') << "the negative control";
  EXPECT_EQ(in_child([&a] { return a.destroy().bytes == page ? 7 : 8; }), 7);
  EXPECT_EQ(at[0], 'x');
  munmap(plain, page);
}

TEST(Arena, IsKeptOutOfCoreDumps) {
  arena a = make(1 << 20);
  auto at = reinterpret_cast<uintptr_t>(a.take(1));
  FILE* maps = std::fopen("/proc/self/smaps", "r");
  ASSERT_NE(maps, nullptr);
  char line[512], flags[512] = {};
  bool inside = false;
  while (std::fgets(line, sizeof line, maps)) {
    uintptr_t from, to;
    if (std::sscanf(line, "%lx-%lx ", &from, &to) == 2) inside = from <= at && at < to;
    if (inside && std::strncmp(line, "VmFlags:", 8) == 0) std::strcpy(flags, line);
  }
  std::fclose(maps);
  EXPECT_NE(std::strstr(flags, " dd"), nullptr) << flags;
  EXPECT_NE(std::strstr(flags, " wf"), nullptr) << flags;
}

TEST(Arena, SaysWhetherItIsLocked) {
  // In a child: the limit can't be raised again.
  int code = in_child([] {
    rlimit none{0, 0}, some{1 << 17, 1 << 17};
    if (setrlimit(RLIMIT_MEMLOCK, &some) != 0) return 1;
    auto a = arena::make(1 << 20);
    bool privileged = false;
    if (!a->take(100) || !a->locked()) return 2;
    if (!a->take(1 << 19)) return 3;
    privileged = a->locked();  // CAP_IPC_LOCK knows no limit
    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) return 4;
    auto b = arena::make(1 << 20);
    if (!b->take(100)) return 5;
    return b->locked() == privileged ? 0 : 6;
  });
  EXPECT_EQ(code, 0);
}

TEST(ArenaDeathTest, EndsTheProcessOnAHandleWithoutMemory) {
  arena destroyed = make(page);
  destroyed.destroy();
  EXPECT_DEATH(destroyed.take(1), "broken invariant");
  EXPECT_DEATH(destroyed.resource(), "broken invariant");
  EXPECT_DEATH(destroyed.destroy(), "broken invariant");
  arena a = make(page);
  arena b = std::move(a);
  EXPECT_DEATH((void)a.used(), "broken invariant");
  EXPECT_DEATH(b.take(1, 3), "broken invariant");
  EXPECT_DEATH(b.take(1, 2 * page), "broken invariant");
}

TEST(ArenaDeathTest, FaultsBeyondBothEndsAndAfterTheEnd) {
  arena a = make(2 * page);
  auto* at = static_cast<volatile char*>(a.take(2 * page, page));
  at[2 * page - 1] = 1;
  EXPECT_DEATH(at[2 * page] = 1, "");
  EXPECT_DEATH(at[-1] = 1, "");
  auto* resource = a.resource();
  a.destroy();
  EXPECT_DEATH((void)resource->allocate(1, 1), "");
  EXPECT_DEATH(at[0] = 1, "");
}

}  // namespace
}  // namespace lethe
