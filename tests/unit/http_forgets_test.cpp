// While a connection lives on, nothing of its last request or answer is in the process's memory.

#include <cinttypes>

#include "runtime/base/wipe.hpp"
#include "tests/unit/http_peers.hpp"

namespace lethe {
namespace {

using namespace http_test;

// Built when it is needed, so that no copy lies in the program's own data.
constexpr size_t canary_bytes = 48;
char canary_at(size_t i) { return char('A' + (i * i * 7 + i * 3 + 5) % 26); }

bool is_canary(const char* at) {
  for (size_t i = 0; i < canary_bytes; ++i)
    if (at[i] != canary_at(i)) return false;
  return true;
}

/// How often it lies in memory that this process can write; stacks and their registers excepted.
__attribute__((noinline)) int canaries() {
  struct range {
    uintptr_t from, to;
  };
  std::vector<range> ranges;
  FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (std::fgets(line, sizeof line, maps)) {
    uintptr_t from = 0, to = 0;
    char mode[8] = {};
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &from, &to, mode) != 3) continue;
    if (mode[0] == 'r' && mode[1] == 'w' && !std::strstr(line, "[stack]"))
      ranges.push_back({from, to});
  }
  std::fclose(maps);
  int found = 0;
  for (auto r : ranges)
    for (auto* at = reinterpret_cast<const char*>(r.from);
         at + canary_bytes <= reinterpret_cast<const char*>(r.to); ++at)
      found += at[0] == canary_at(0) && is_canary(at);
  return found;
}

/// Calls with a text that holds the canary, which is gone afterwards.
template <class F>
void with_canary(const std::string& before, F use) {
  char text[512];
  std::memcpy(text, before.data(), before.size());
  for (size_t i = 0; i < canary_bytes; ++i) text[before.size() + i] = canary_at(i);
  use(std::string_view(text, before.size() + canary_bytes));
  wipe(text, sizeof text);
}

void receive(client& c, size_t bytes) {
  char text[512];
  size_t has = 0;
  while (has < bytes) {
    ssize_t n = recv(c.fd(), text + has, sizeof text - has, 0);
    if (n <= 0) break;
    has += size_t(n);
  }
  EXPECT_GE(has, bytes);
  wipe(text, sizeof text);
}

TEST(HttpForgets, WhatWasAskedAndAnsweredOnAConnectionThatLives) {
#ifdef LETHE_SANITIZED
  GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  std::mutex mutex;
  std::optional<http_request> held;
  program p([&](http_server&, http_request& r) {
    std::lock_guard lock(mutex);
    held.emplace(std::move(r));
  });
  auto s = serve(p);
  client c(*s);
  const std::string heads[] = {
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 48\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n30\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ",
  };
  const char* ends[] = {"", "\r\n0\r\n\r\n", "\r\n\r\n"};
  for (size_t i = 0; i < 3; ++i) {
    with_canary(heads[i], [&](std::string_view text) { c.send(text); });
    c.send(ends[i]);
    auto id = p.wait_arrived(i + 1);
    EXPECT_TRUE(eventually([&] {
      std::lock_guard lock(mutex);
      return held.has_value();
    }));
    EXPECT_EQ(canaries(), 1) << "the search does not find a request that lives, or finds two";
    held.reset();
    EXPECT_EQ(canaries(), 0) << heads[i];
    s->begin(id, {.content_length = canary_bytes});
    with_canary("", [&](std::string_view text) { s->write(id, text); });
    s->end(id);
    EXPECT_TRUE(p.wait_sent(id));
    receive(c, canary_bytes + 60);
    EXPECT_EQ(canaries(), 0) << "of the answer";
  }
}

}  // namespace
}  // namespace lethe
