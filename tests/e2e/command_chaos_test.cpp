// Processes that die, stop and come back under load: every request ends, completely or with an
// error that may be asked again. LETHE_CHAOS_SECONDS says how long (default 12; nightly 300).
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "tests/e2e/chaos.hpp"

namespace lethe {
namespace {

constexpr double lost_after_s = 1.5;
constexpr double long_run_s = 60;  // from here on memory is judged, not only told

double chaos_seconds() {
  const char* asked = std::getenv("LETHE_CHAOS_SECONDS");
  return asked ? std::atof(asked) : 12;
}

struct engine_process {
  pid_t pid = 0;
  bool ready = false;
};

/// The engines' processes, as status knows them, and how many there should be.
std::vector<engine_process> engines_of(const std::string& file, size_t* wanted = nullptr) {
  std::vector<engine_process> all;
  json_answer json(run_lethe({"status", "--json", "--cluster", file}).out);
  if (!json.valid) return all;
  if (wanted) *wanted = json.root["wanted"].get_uint64().value_unsafe();
  for (auto e : json.root["engines"].get_array())
    all.push_back({.pid = pid_t(e["pid"].get_uint64().value_unsafe()),
                   .ready = std::string_view(e["phase"].get_string().value_unsafe()) == "ready"});
  return all;
}

/// As many engines serve as should, and none of them is a process that was made to fail: one that
/// stopped seems to be ready until it is missed.
bool is_whole(const std::string& file, const std::set<pid_t>& victims) {
  size_t wanted = 1, ready = 0;
  for (const auto& e : engines_of(file, &wanted)) ready += e.ready && !victims.contains(e.pid);
  return ready == wanted;
}

/// What a process takes now.
struct footprint {
  double resident_mib = 0;
  size_t threads = 0, files = 0;
};

size_t entries(const std::string& folder) {
  std::error_code failed;
  size_t n = 0;
  for (auto at = std::filesystem::directory_iterator(folder, failed);
       !failed && at != std::filesystem::directory_iterator(); at.increment(failed))
    ++n;
  return n;
}

footprint footprint_of(pid_t pid) {
  std::string at = "/proc/" + std::to_string(pid);
  double pages = 0, resident = 0;
  std::istringstream(read_file(at + "/statm")) >> pages >> resident;
  return {resident * double(::sysconf(_SC_PAGESIZE)) / (1 << 20), entries(at + "/task"),
          entries(at + "/fd")};
}

double median(std::vector<double> of) {
  if (of.empty()) return NAN;
  std::ranges::nth_element(of, of.begin() + long(of.size() / 2));
  return of[of.size() / 2];
}

/// Engines' memory when they are two to four seconds old: it must not depend on when they began.
class engine_memory {
 public:
  void look(const std::vector<engine_process>& engines) {
    for (const auto& e : engines) {
      if (!e.ready || e.pid == 0) continue;
      auto [at, fresh] = first_seen_.emplace(e.pid, now_s());
      double age = now_s() - at->second;
      if (fresh || age < 2 || age > 4 || !looked_.insert(e.pid).second) continue;
      if (double mib = footprint_of(e.pid).resident_mib; mib > 0) mib_.push_back(mib);
    }
  }
  size_t count() const { return mib_.size(); }
  double first() const { return median({mib_.begin(), mib_.begin() + long(mib_.size() / 3)}); }
  double last() const { return median({mib_.end() - long(mib_.size() / 3), mib_.end()}); }

 private:
  std::map<pid_t, double> first_seen_;
  std::set<pid_t> looked_;
  std::vector<double> mib_;
};

struct chaos {
  explicit chaos(const running_cluster& of) : c(of) {}

  /// One process of the engines dies or stops.
  void one_fault(bool stops) {
    auto engines = engines_of(c.file);
    memory.look(engines);
    std::erase_if(engines, [this](const auto& e) { return e.pid == 0 || victims.contains(e.pid); });
    if (engines.empty()) return;
    pid_t victim = engines[random() % engines.size()].pid;
    victims.insert(victim);
    double at = now_s();
    ::kill(victim, stops ? SIGSTOP : SIGKILL);
    times.add(at, now_s() + (stops ? lost_after_s : 0) + noticed_s);
    ++(stops ? stopped : killed);
  }

  void run(double seconds) {
    double begun = now_s(), next = begun;
    while (now_s() < begun + seconds) {
      if (now_s() >= next) {
        one_fault(random() % 3 == 0);
        next = now_s() + 1 + double(random() % 1500) / 1000;
      }
      memory.look(engines_of(c.file));
      leader.push_back(footprint_of(c.pid));
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
    }
    one_fault(true);
    one_fault(false);
  }

  const running_cluster& c;
  std::mt19937 random{4711};
  fault_times times;
  std::set<pid_t> victims;
  engine_memory memory;
  std::vector<footprint> leader;
  unsigned killed = 0, stopped = 0;
};

struct counts {
  std::map<ending, unsigned> all, untouched;  // untouched: no fault in their time
  double slowest_s = 0;
  std::string unexplained;  // what was lost though nothing had happened

  static double whole_share(const std::map<ending, unsigned>& of, bool with_lost) {
    double whole = 0, every = 0;
    for (auto [how, n] : of) {
      whole += how == ending::whole ? n : 0;
      every += how == ending::lost && !with_lost ? 0 : n;
    }
    return every > 0 ? whole / every : 0;
  }
  /// Of those that no replica took with it.
  double not_lost_whole() const { return whole_share(all, false); }
  double untouched_whole() const { return whole_share(untouched, true); }
};

counts count(const std::vector<request_seen>& requests, const fault_times& times) {
  counts n;
  for (const auto& r : requests) {
    ++n.all[r.how];
    if (!times.touch(r.begun, r.ended)) {
      ++n.untouched[r.how];
      if (r.how == ending::lost) n.unexplained += times.before(r.begun, r.ended);
    }
    n.slowest_s = std::max(n.slowest_s, r.ended - r.begun);
  }
  return n;
}

void tell(chaos& ch, counts& n, double healed) {
  std::printf(
      "%u killed, %u stopped; requests: %u whole, %u lost with their engine, %u turned away, %u "
      "cut, %u other; slowest %.1f s\n"
      "whole of those not lost: %.1f %%; of those without a fault in their time: %.1f %% (of %u); "
      "whole again after %.1f s\n",
      ch.killed, ch.stopped, n.all[ending::whole], n.all[ending::lost], n.all[ending::turned_away],
      n.all[ending::cut], n.all[ending::other], n.slowest_s, 100 * n.not_lost_whole(),
      100 * n.untouched_whole(), n.untouched[ending::whole], healed);
  const auto &a = ch.leader[ch.leader.size() / 4], &b = ch.leader.back();
  std::printf(
      "leader: %.1f -> %.1f MiB, %zu -> %zu threads, %zu -> %zu files; engines of the same age: "
      "%.1f -> %.1f MiB (%zu looked at)\n",
      a.resident_mib, b.resident_mib, a.threads, b.threads, a.files, b.files, ch.memory.first(),
      ch.memory.last(), ch.memory.count());
}

/// Between a quarter of the run and its end.
void expect_flat(const chaos& ch) {
  const auto &a = ch.leader[ch.leader.size() / 4], &b = ch.leader.back();
  EXPECT_LE(b.threads, a.threads + 6);
  EXPECT_LE(b.files, a.files + 16);  // connections of clients among them
  if (chaos_seconds() < long_run_s) return;
  EXPECT_LT(b.resident_mib, a.resident_mib * 1.1 + 2);
  EXPECT_GE(ch.memory.count(), 12u);
  EXPECT_LT(ch.memory.last(), ch.memory.first() * 1.1 + 2);
}

TEST(Chaos, EveryRequestEndsWhateverDies) {
  running_cluster c(
      lab_config("[engines]\ncount = 3\nprocesses = \"separate\"\n"
                 "[health]\nheartbeat_ms = 200\nlost_after_ms = 1500\nrestarts = 1000\n"
                 "restart_max_ms = 1000\n"));
  ASSERT_TRUE(c.tells("ready: 3 of 3")) << c.errors();
  clients asking(c.port("api"), 8);
  chaos ch(c);
  ch.run(chaos_seconds());
  double last_fault = now_s();
  bool whole = false;
  while (!(whole = is_whole(c.file, ch.victims)) && now_s() - last_fault < 10)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  double healed = now_s() - last_fault;
  auto n = count(asking.end(), ch.times);
  tell(ch, n, healed);
  EXPECT_TRUE(whole) << c.errors();
  EXPECT_GT(ch.killed + ch.stopped, 3u);
  EXPECT_GT(n.all[ending::whole], 20u);
  EXPECT_EQ(n.all[ending::cut], 0u);
  EXPECT_EQ(n.all[ending::unheard] + n.all[ending::other], 0u) << c.errors();
  EXPECT_LE(n.untouched[ending::lost] * 1000, n.untouched[ending::whole])
      << n.unexplained << c.errors();
  EXPECT_GE(n.not_lost_whole(), 0.9);
  EXPECT_GE(n.untouched_whole(), 0.9);
  EXPECT_LT(n.slowest_s, 30);
  expect_flat(ch);
  EXPECT_EQ(run_lethe({"down", "--cluster", c.file}).exit_code, 0);
  EXPECT_EQ(c.wait(), 0) << c.errors();
}

}  // namespace
}  // namespace lethe
