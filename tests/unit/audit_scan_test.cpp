// The search that audits rely on finds what is there, wherever it is, and nothing else.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "runtime/audit/memory_scan.hpp"

namespace lethe::audit {
namespace {

constexpr size_t letters = 16;

/// A word that only who has the number can write: not a constant of this program, nor in a heap
/// that a child inherits.
void write_word(uint64_t number, char* to) {
  to[0] = 'Q';
  for (size_t i = 1; i < letters; ++i) to[i] = char('a' + (number >> (4 * i) & 15));
}

/// A process that holds what `what` makes of a word, stopped while it is searched. The word itself
/// is gone from it.
std::vector<trace_of> found_in_a_child(void (*what)(const char* word)) {
  std::random_device random;
  const uint64_t number = uint64_t(random()) << 32 | random();
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char word[letters];
    write_word(number, word);
    what(word);
    ::explicit_bzero(word, sizeof word);
    (void)!::write(ready[1], "r", 1);
    for (;;) ::pause();
  }
  char byte;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  std::string word(letters, ' ');
  write_word(number, word.data());
  const needle_finder finder(forms_of_word(word));
  memory_search search(finder);
  {
    stopped quiet({child});
    search.process(child);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_GT(search.looked().bytes, 100'000u);
  return search.traces();
}

char* fresh_page(int flags) {
  return static_cast<char*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0));
}

std::set<std::string> forms_of(const std::vector<trace_of>& all) {
  std::set<std::string> forms;
  for (const auto& t : all) forms.insert(t.form);
  return forms;
}

class MemoryScan : public testing::Test {
  void SetUp() override {
#ifdef LETHE_SANITIZED
    GTEST_SKIP() << "the address sanitizer's shadow is terabytes that can be read";
#endif
  }
};

TEST_F(MemoryScan, FindsText) {
  const auto found =
      found_in_a_child([](const char* w) { std::memcpy(fresh_page(MAP_PRIVATE), w, 16); });
  EXPECT_TRUE(forms_of(found).contains("text, its begin")) << text_of(found);
  EXPECT_TRUE(forms_of(found).contains("text, its end")) << text_of(found);
}

TEST_F(MemoryScan, FindsHalfOfIt) {
  const auto found =
      found_in_a_child([](const char* w) { std::memcpy(fresh_page(MAP_PRIVATE), w + 8, 8); });
  EXPECT_TRUE(forms_of(found).contains("text, its end")) << text_of(found);
}

TEST_F(MemoryScan, FindsWideText) {
  const auto found = found_in_a_child([](const char* w) {
    char* page = fresh_page(MAP_PRIVATE);
    for (size_t i = 0; i < 16; ++i) page[2 * i] = w[i];
  });
  EXPECT_TRUE(forms_of(found).contains("UTF-16")) << text_of(found);
}

TEST_F(MemoryScan, FindsSharedMemory) {
  const auto found =
      found_in_a_child([](const char* w) { std::memcpy(fresh_page(MAP_SHARED), w, 16); });
  EXPECT_FALSE(forms_of(found).empty());
}

TEST_F(MemoryScan, FindsWhatWaitsInAPipe) {
  const auto found = found_in_a_child([](const char* w) {
    int ends[2];
    if (::pipe(ends) == 0) (void)!::write(ends[1], w, letters);
  });
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(std::ranges::any_of(found, [](const trace_of& t) {
    return t.place.starts_with("pipe:");
  })) << text_of(found);
}

TEST_F(MemoryScan, FindsDeletedFilesThatAreOpen) {
  const auto found = found_in_a_child([](const char* w) {
    char name[] = "/tmp/lethe-scan-XXXXXX";
    const int fd = ::mkstemp(name);
    (void)!::write(fd, w, letters);
    ::unlink(name);
  });
  EXPECT_TRUE(std::ranges::any_of(found, [](const trace_of& t) {
    return t.place.find("(deleted)") != std::string::npos;
  })) << text_of(found);
}

TEST(NeedleFinder, FindsRunsOfIds) {
  std::vector<uint64_t> ids{3001, 17, 2040, 999, 4, 31, 700, 12, 2222, 5};
  const needle_finder finder(forms_of_ids(ids));
  EXPECT_EQ(finder.count(), 9u);
  std::set<std::string> forms;
  for (size_t bytes : {2, 4, 8}) {
    std::string run = "x";
    for (size_t i = 1; i < 9; ++i)
      for (size_t b = 0; b < bytes; ++b) run += char(ids[i] >> (8 * b) & 255);
    finder.search(run, [&](size_t at, const needle& n) {
      EXPECT_EQ(at, 1u);
      forms.insert(n.form);
    });
    finder.search(run.substr(0, run.size() - 1), [&](size_t, const needle&) { ADD_FAILURE(); });
  }
  EXPECT_EQ(forms.size(), 3u);
}

TEST_F(MemoryScan, FindsNothingWhereNothingIs) {
  const auto found = found_in_a_child([](const char*) {});
  EXPECT_TRUE(found.empty()) << text_of(found);
}

}  // namespace
}  // namespace lethe::audit
