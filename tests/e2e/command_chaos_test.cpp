// Processes that die, stop and come back under load: every request ends, completely or with an
// error that may be asked again. LETHE_CHAOS_SECONDS says how long (default 12; nightly 300).
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "tests/e2e/cluster.hpp"

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

bool is_whole(const std::string& file) {
  json_answer json(run_lethe({"status", "--json", "--cluster", file}).out);
  if (!json.valid) return false;
  uint64_t ready = 0, wanted = json.root["wanted"].get_uint64().value_unsafe();
  for (auto e : json.root["engines"].get_array())
    ready += std::string_view(e["phase"].get_string().value_unsafe()) == "ready";
  return ready == wanted;
}

struct outcomes {
  std::atomic<uint64_t> whole{0}, retryable{0}, cut{0}, other{0};
  std::atomic<int> slowest_ms{0};
};

/// A stream is whole with its [DONE]; an error inside it says so in JSON, and may be asked again.
void count(outcomes& o, const http_said& said, bool streamed) {
  bool ended = streamed ? said.body.ends_with("data: [DONE]\n\n")
                        : said.body.find("\"usage\"") != std::string::npos;
  if (said.status == 200 && ended)
    ++o.whole;
  else if (said.status == 503 || said.status == 429 ||
           (said.status == 200 && said.body.find("\"engine_lost\"") != std::string::npos))
    ++o.retryable;
  else if (said.status == 200)
    ++o.cut;
  else
    ++o.other;
}

TEST(Chaos, EveryRequestEndsWhateverDies) {
  running_cluster c(
      lab_config("[engines]\ncount = 3\nprocesses = \"separate\"\n"
                 "[health]\nheartbeat_ms = 200\nlost_after_ms = 1500\nrestarts = 1000\n"));
  ASSERT_TRUE(c.tells("ready: 3 of 3")) << c.errors();
  uint16_t api = c.port("api");
  outcomes o;
  std::atomic<bool> stop{false};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i)
    clients.emplace_back([&, i] {
      bool streamed = i % 2 == 0;
      auto body = completion(16, streamed ? R"(,"stream":true)" : "");
      while (!stop) {
        auto begun = test_clock::now();
        count(o, http_ask(api, "/v1/completions", body), streamed);
        int ms = int(std::chrono::duration<double, std::milli>(test_clock::now() - begun).count());
        if (ms > o.slowest_ms) o.slowest_ms = ms;
      }
    });
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
  stop = true;
  for (auto& t : clients) t.join();
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
