// Processes that die, stop and come back under load: every request ends, completely or with an
// error that may be asked again. LETHE_CHAOS_SECONDS says how long (default 12; nightly 300).
#include <gtest/gtest.h>

#include <random>

#include "tests/e2e/load.hpp"

namespace lethe {
namespace {

double chaos_seconds() {
  const char* asked = std::getenv("LETHE_CHAOS_SECONDS");
  return asked ? std::atof(asked) : 12;
}

/// Of the engines' processes, as status knows them.
std::vector<pid_t> engine_pids(const std::string& file) {
  std::vector<pid_t> pids;
  auto status = run_lethe({"status", "--json", "--cluster", file});
  json_answer json(status.out);
  if (!json.valid) return pids;
  for (auto e : json.root["engines"].get_array())
    if (auto pid = e["pid"].get_uint64().value_unsafe(); pid > 0) pids.push_back(pid_t(pid));
  return pids;
}

TEST(Chaos, EveryRequestEndsWhateverDies) {
  running_cluster c(
      lab_config("[engines]\ncount = 3\nprocesses = \"separate\"\n"
                 "[health]\nheartbeat_ms = 200\nlost_after_ms = 1500\nrestarts = 1000\n"));
  ASSERT_TRUE(c.tells("ready: 3 of 3")) << c.errors();
  load clients(c.port("api"), 8, 16);
  std::mt19937 random(4711);
  std::vector<pid_t> stopped;
  uint64_t killed = 0;
  auto until = test_clock::now() + std::chrono::duration<double>(chaos_seconds());
  while (test_clock::now() < until) {
    auto pids = engine_pids(c.file);
    if (!pids.empty()) {
      pid_t victim = pids[random() % pids.size()];
      bool stops = random() % 3 == 0;
      ::kill(victim, stops ? SIGSTOP : SIGKILL);
      ++killed;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1000 + random() % 1500));
  }
  auto last_fault = test_clock::now();
  bool whole = false;
  while (!(whole = is_whole(c.file)) && test_clock::now() - last_fault < std::chrono::seconds(10))
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  double healed = std::chrono::duration<double>(test_clock::now() - last_fault).count();
  clients.end();
  const auto& o = clients.seen;
  std::printf(
      "%llu faults: %llu whole, %llu retryable, %llu cut, %llu other; slowest %d ms; whole again "
      "after %.1f s\n",
      (unsigned long long)killed, (unsigned long long)o.whole, (unsigned long long)o.retryable,
      (unsigned long long)o.cut, (unsigned long long)o.other, o.slowest_ms.load(), healed);
  EXPECT_TRUE(whole) << c.errors();
  EXPECT_GT(killed, 3u);
  EXPECT_GT(o.whole, 20u);
  EXPECT_EQ(o.cut, 0u);
  EXPECT_EQ(o.other, 0u) << c.errors();
  EXPECT_LT(o.slowest_ms, 30'000);
  EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
  EXPECT_EQ(c.wait(), 0) << c.errors();
}

}  // namespace
}  // namespace lethe
