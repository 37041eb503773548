// A cluster that forgets does not grow: what each process holds after its first 504 requests is
// what it holds at the end. LETHE_MEMORY_REQUESTS says how many (default 3,000; nightly 10,000).
#include <gtest/gtest.h>

#include <atomic>

#include "tests/e2e/cluster.hpp"
#include "tests/places.hpp"

namespace lethe {
namespace {

constexpr uint32_t first_requests = 504, all_requests = 10'000;
constexpr double growth_max = 0.02;

uint32_t requests_asked() {
  const char* asked = std::getenv("LETHE_MEMORY_REQUESTS");
  return asked ? uint32_t(std::atoi(asked)) : 3'000;
}

using held_by = std::map<pid_t, uint64_t>;  // bytes by process

/// Bytes of a process that are in memory; 0: there is none.
uint64_t resident_bytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * uint64_t(::sysconf(_SC_PAGESIZE));
}

double growth(uint64_t before, uint64_t after) {
  return before == 0 || after == 0 ? 1 : double(after) / double(before) - 1;
}

/// What the requests were told, as far as it counts here.
struct told {
  std::atomic<uint32_t> whole{0}, refused{0}, left{0}, wrong{0};
};

/// Reads until the answer has begun to say something, then is gone.
bool ask_and_leave(uint16_t port, const std::string& body) {
  int fd = connect_to(port);
  if (fd < 0) return false;
  std::string text =
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  std::string all;
  char part[4096];
  bool sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == ssize_t(text.size());
  while (sent && all.find("data: ") == all.npos) {
    ssize_t n = ::recv(fd, part, sizeof part, 0);
    if (n <= 0) break;
    all.append(part, size_t(n));
  }
  ::close(fd);
  return all.find("data: ") != all.npos;
}

std::string prompt_of(const char* prompt, uint32_t max_tokens, const std::string& more = {}) {
  return std::string(R"({"model":"ember","prompt":")") + prompt +
         R"(","ignore_eos":true,"max_tokens":)" + std::to_string(max_tokens) + more + "}";
}

void count_whole(told& t, const http_said& said, const char* last) {
  bool whole = said.status == 200 && said.body.find(last) != std::string::npos;
  ++(whole ? t.whole : t.wrong);
}

/// Of every kind one after the other.
void ask(uint16_t port, uint32_t number, told& t) {
  constexpr const char* stream = R"(,"stream":true)";
  switch (number % 8) {
    case 0:
    case 3:
      return count_whole(t, http_ask(port, "/v1/completions", prompt_of("One two", 4)), "usage");
    case 1:
    case 5:
      return count_whole(t, http_ask(port, "/v1/completions", prompt_of("Red", 4, stream)), "DONE");
    case 2:
      return count_whole(
          t,
          http_ask(port, "/v1/chat/completions",
                   R"({"model":"ember","messages":[{"role":"user","content":"My dog is called )"
                   R"(Pim. What is my dog called?"}],"max_tokens":4})"),
          "usage");
    case 4:
      ++(ask_and_leave(port, prompt_of("A story", 200, stream)) ? t.left : t.wrong);
      return;
    case 6: {
      auto said = http_ask(port, "/v1/completions", prompt_of("One", 4, R"(,"temperature":-1)"));
      ++(said.status == 400 ? t.refused : t.wrong);
      return;
    }
    default: {
      auto said = http_ask(port, "/v1/completions", "{\"model\":\"ember\",");
      ++(said.status == 400 ? t.refused : t.wrong);
    }
  }
}

/// Requests [first, last) from several clients.
void serve(uint16_t port, uint32_t first, uint32_t last, told& t) {
  std::atomic<uint32_t> next{first};
  std::vector<std::thread> clients;
  for (int i = 0; i < 6; ++i)
    clients.emplace_back([&] {
      for (uint32_t n = next++; n < last; n = next++) ask(port, n, t);
    });
  for (auto& c : clients) c.join();
}

uint64_t number_of(const json_answer& json, const char* field) {
  uint64_t sum = 0;
  for (auto e : json.root["engines"].get_array()) sum += e[field].get_uint64().value_unsafe();
  return sum;
}

/// What a cluster's processes hold once nothing runs.
held_by settled(const running_cluster& c) {
  std::map<pid_t, uint64_t> held;
  for (int i = 0; i < 100 && held.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    json_answer json(run_lethe({"status", "--json", "--cluster", c.file}).out);
    if (!json.valid || number_of(json, "running") + number_of(json, "waiting") > 0) continue;
    held[c.pid] = resident_bytes(c.pid);
    for (auto e : json.root["engines"].get_array()) {
      auto pid = pid_t(e["pid"].get_uint64().value_unsafe());
      held[pid] = resident_bytes(pid);
    }
  }
  return held;
}

std::string config_of(const std::string& engines) {
  return "profile = \"lab\"\n[model]\npath = \"" + std::string(places::source) +
         "/models/ember\"\n[listen]\napi = \"127.0.0.1:0\"\nmetrics = \"127.0.0.1:0\"\n" + engines;
}

class Memory : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef LETHE_SANITIZED
    GTEST_SKIP() << "a sanitizer keeps what is freed";
#endif
  }
};

double most_grown(const running_cluster& c, const held_by& before, const held_by& after,
                  uint32_t requests) {
  double most = 0;
  for (auto [pid, bytes] : before) {
    auto now = after.find(pid);
    double grew = growth(bytes, now == after.end() ? 0 : now->second);
    std::printf("%s: %.2f MiB, %.2f MiB after %u requests more: %+.2f %%\n",
                pid == c.pid ? "leader" : "engine", double(bytes) / (1 << 20),
                double(now == after.end() ? 0 : now->second) / (1 << 20), requests - first_requests,
                100 * grew);
    most = std::max(most, grew);
  }
  return most;
}

void expect_flat(const std::string& engines, size_t processes) {
  running_cluster c(config_of(engines));
  ASSERT_TRUE(c.tells("ready: ")) << c.errors();
  uint16_t api = c.port("api");
  uint32_t requests = requests_asked();
  ASSERT_GT(requests, first_requests);
  told t;
  serve(api, 0, first_requests, t);
  auto before = settled(c);
  serve(api, first_requests, requests, t);
  auto after = settled(c);
  EXPECT_EQ(before.size(), processes) << c.errors();
  double grew = most_grown(c, before, after, requests);
  if (grew > growth_max && requests < all_requests) {
    // Few requests may not have met every thread's heap before; what leaks grows again.
    serve(api, first_requests, requests, t);
    grew = most_grown(c, after, settled(c), requests);
    requests += requests - first_requests;
  }
  EXPECT_LE(grew, growth_max);
  EXPECT_EQ(t.wrong, 0u) << c.errors();
  EXPECT_GE(t.whole, requests * 5 / 8);
  EXPECT_GE(t.left, requests / 8);
  EXPECT_GE(t.refused, requests / 4);
  EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
  EXPECT_EQ(c.wait(), 0) << c.errors();
}

TEST_F(Memory, OfEveryProcessStaysAsItWasAfterTheFirstRequests) {
  expect_flat("[engines]\ncount = 2\nprocesses = \"separate\"\n", 3);
}

TEST_F(Memory, OfOneProcessWithEverythingInItStaysSo) {
  expect_flat("[engines]\nprocesses = \"shared\"\n", 1);
}

size_t threads_of(pid_t pid) {
  std::error_code gone;
  std::filesystem::directory_iterator tasks("/proc/" + std::to_string(pid) + "/task", gone);
  return gone ? 0 : size_t(std::distance(begin(tasks), end(tasks)));
}

/// An engine comes and goes; what of it ends on its own time is waited for.
void scale_up_and_down(const running_cluster& c, size_t threads) {
  EXPECT_EQ(run_lethe({"scale", "engines=2", "--cluster", c.file}).exit_code, 0);
  for (int i = 0; i < 600 && !is_whole(c.file); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(run_lethe({"scale", "engines=1", "--cluster", c.file}).exit_code, 0);
  auto alone = [&c] {
    json_answer json(run_lethe({"status", "--json", "--cluster", c.file}).out);
    return json.valid && json.root["engines"].get_array().size() == 1;
  };
  for (int i = 0; i < 600 && !alone(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (int i = 0; i < 100 && threads_of(c.pid) > threads; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

TEST_F(Memory, EnginesThatComeAndGoLeaveNothingInTheirProcess) {
  running_cluster c(lab_config("[engines]\nprocesses = \"shared\"\nthreads = 1\n"));
  ASSERT_TRUE(c.tells("ready: ")) << c.errors();
  size_t threads = threads_of(c.pid);
  for (int i = 0; i < 4; ++i) scale_up_and_down(c, threads);
  uint64_t before = resident_bytes(c.pid);
  for (int i = 0; i < 8; ++i) scale_up_and_down(c, threads);
  uint64_t after = resident_bytes(c.pid);
  std::printf("%zu threads, %zu; %.2f MiB, %.2f MiB\n", threads, threads_of(c.pid),
              double(before) / (1 << 20), double(after) / (1 << 20));
  EXPECT_EQ(threads_of(c.pid), threads);
  EXPECT_LE(growth(before, after), growth_max);
  EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
  EXPECT_EQ(c.wait(), 0) << c.errors();
}

/// A process of an engine's size that keeps `kept` bytes of each request.
class hoarder {
 public:
  explicit hoarder(size_t kept) {
    if (::pipe(to_) != 0 || ::pipe(from_) != 0) return;
    pid = ::fork();
    if (pid == 0) serve(kept);
  }
  ~hoarder() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    for (int fd : {to_[0], to_[1], from_[0], from_[1]}) ::close(fd);
  }
  /// False: it broke.
  bool ask(uint32_t requests) {
    char done = 0;
    return ::write(to_[1], &requests, sizeof requests) == sizeof requests &&
           ::read(from_[0], &done, 1) == 1;
  }
  pid_t pid = -1;

 private:
  [[noreturn]] void serve(size_t kept) {
    constexpr size_t own = size_t{48} << 20;
    std::fill_n(static_cast<volatile char*>(std::malloc(own)), own, 'o');
    uint32_t requests = 0;
    while (::read(to_[0], &requests, sizeof requests) == sizeof requests) {
      for (uint32_t i = 0; i < requests; ++i) {
        std::vector<char> answered(64 << 10, 'a');
        if (kept > 0) std::fill_n(static_cast<volatile char*>(std::malloc(kept)), kept, 'k');
      }
      if (::write(from_[1], "d", 1) != 1) break;
    }
    ::_exit(0);
  }
  int to_[2], from_[2];
};

double growth_of(hoarder& h, uint32_t requests) {
  if (!h.ask(first_requests)) return 0;
  uint64_t before = resident_bytes(h.pid);
  return h.ask(requests) ? growth(before, resident_bytes(h.pid)) : 0;
}

// As many as one of two engines gets between the first requests and the default's end.
constexpr uint32_t share = 2'500 / 2;

TEST_F(Memory, AnEngineThatKeptAKilobyteOfEachRequestWouldBeFound) {
  hoarder h(1024);
  EXPECT_GT(growth_of(h, share), growth_max);
}

TEST_F(Memory, AnEngineThatKeepsNothingIsNotAccused) {
  hoarder h(0);
  ASSERT_TRUE(h.ask(1));
  double grew = growth_of(h, share);
  EXPECT_LE(grew, growth_max);
  EXPECT_GT(resident_bytes(h.pid), size_t{48} << 20);
}

TEST_F(Memory, AProcessThatIsGoneIsNotFlat) {
  EXPECT_GT(growth(1 << 20, resident_bytes(-1)), growth_max);
}

}  // namespace
}  // namespace lethe
