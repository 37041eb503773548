// Ranks that are processes: the bits of one rank, what a rank that is killed or stopped does to the
// others, and what stays in their memory.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "actors/cluster/rank_asks.hpp"
#include "runtime/audit/memory_scan.hpp"
#include "runtime/crypto/certificate.hpp"
#include "tests/e2e/command.hpp"
#include "tests/e2e/engine_run.hpp"
#include "tests/e2e/rank/rank_config.hpp"

extern char** environ;

namespace lethe::e2e {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using testing::manner;
using testing::run_on;

std::string path_of(const std::string& model) {
  if (model == "ember") return std::string(places::source) + "/models/ember";
  return vectors().empty() ? "" : vectors() / "models" / model;
}

/// Keys for all ranks of this program.
const std::filesystem::path& keys() {
  static const scratch_folder folder;
  static const std::filesystem::path path = [] {
    auto authority = make_authority("ranks", 1);
    auto own = make_host(*authority, "local", "127.0.0.1", 1);
    folder.write("ca.crt", pem_of(authority->certificate.get()));
    folder.write("own.crt", pem_of(own->certificate.get()));
    folder.write("own.key", pem_of(own->key.get()));
    return folder / "";
  }();
  return path;
}

/// One rank, started; waited for at the latest when it dies.
class rank_process {
 public:
  rank_process(uint32_t rank, const cut& ranks, rank_store& store, const std::string& model,
               std::chrono::milliseconds timeout, bool protected_link)
      : rank_(std::to_string(rank)), store_(store) {
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    fd_ = owned_fd(ends[0]);
    std::vector<std::string> words{
        places::rank_program,           rank_, std::to_string(ranks.tensor),
        std::to_string(ranks.pipeline), "3",   std::to_string(timeout.count()),
        protected_link ? "1" : "0",     model, keys()};
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], 3);
    check(posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    serves_ = std::thread([this] { serve(); });
  }
  ~rank_process() {
    kill(pid_, SIGKILL);
    wait();
    serves_.join();
  }
  rank_process(const rank_process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) { kill(pid_, number); }
  /// Its exit status; -1: it did not end in time.
  int ended_within(std::chrono::milliseconds most) {
    for (auto until = steady::now() + most; steady::now() < until;
         std::this_thread::sleep_for(5ms)) {
      int status = 0;
      if (!waited_ && waitpid(pid_, &status, WNOHANG) == pid_) waited_ = true, status_ = status;
      if (waited_) return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
    }
    return -1;
  }
  /// Once it has ended by itself.
  std::string why() {
    if (serves_.joinable()) serves_.join(), serves_ = std::thread([] {});
    auto told = store_.get(why_of(rank_), steady::now());
    return told ? std::string(as_text(*told)) : "";
  }

 private:
  /// Until it has ended.
  void serve() {
    auto line = rank_line::greet(std::move(fd_), keys_in(keys()), false);
    if (!line) return;
    line->wait_for_ever();
    answer_rank(*line, store_);
  }
  void wait() {
    if (!waited_) waitpid(pid_, &status_, 0);
    waited_ = true;
  }
  const std::string rank_;
  rank_store& store_;
  pid_t pid_ = 0;
  int status_ = 0;
  owned_fd fd_;
  bool waited_ = false;
  std::thread serves_;
};

/// Ranks from `first` on are processes; those before it are not started here.
struct processes {
  processes(uint32_t first, const cut& ranks, const std::string& model,
            std::chrono::milliseconds timeout = 20s, bool protected_link = false) {
    for (uint32_t r = first; r < ranks.tensor * ranks.pipeline; ++r)
      all.push_back(
          std::make_unique<rank_process>(r, ranks, store, model, timeout, protected_link));
  }
  memory_rank_store store;
  std::vector<std::unique_ptr<rank_process>> all;
};

/// A replica that this process leads.
struct led {
  led(const opened& m, const std::string& path, const cut& c,
      std::chrono::milliseconds timeout = 20s, bool protected_link = false)
      : others(1, c, path, timeout, protected_link) {
    auto groups = join_rank_groups(rank_gloo(0, c, protected_link, timeout), c, others.store);
    if (!groups) throw std::runtime_error(groups.why().text);
    auto started = process_ranks::start(m.weights(), rank_grid(c), *std::move(groups), false);
    if (!started) throw std::runtime_error(started.why().text);
    leader = *std::move(started);
  }
  processes others;
  std::unique_ptr<process_ranks> leader;
};

class RankProcesses : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, RankProcesses,
                         ::testing::Values("llama-tiny", "llama-tiny-f16", "qwen2-tiny",
                                           "qwen3-tiny", "ember"),
                         [](const auto& p) {
                           std::string name = p.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(RankProcesses, GiveTheBitsOfOneRank) {
  std::string path = path_of(GetParam());
  if (path.empty()) GTEST_SKIP() << "no shared vectors";
  opened m = open(path);
  auto prompts = rank_prompts(m.vocab());
  auto want = testing::run(m.weights(), prompts, {});
  uint32_t tried = 0;
  for (cut c : {cut{2, 1}, cut{1, 2}, cut{2, 2}, cut{4, 1}}) {
    if (!check_cut(m.weights().shape, c)) continue;
    ++tried;
    for (bool protected_link : {false, true}) {
      led r(m, path, c, 60s, protected_link);
      EXPECT_TRUE(run_on(*r.leader, r.leader->depth(), m.vocab(), prompts, rank_manner(c)) == want)
          << c.tensor << " x " << c.pipeline << (protected_link ? " protected" : "");
      r.leader.reset();
      for (auto& other : r.others.all) EXPECT_EQ(other->ended_within(20s), 0) << other->why();
    }
  }
  EXPECT_GE(tried, 3u);
}

std::string any_model() {
  std::string tiny = path_of("llama-tiny");
  return tiny.empty() ? path_of("ember") : tiny;
}

/// What befalls a rank while the leader, in a process of its own, computes step after step.
void expect_all_end(const cut& c, uint32_t victim, int number) {
  auto timeout = number == SIGSTOP ? 1500ms : 20'000ms;
  processes p(0, c, any_model(), timeout);
  ASSERT_TRUE(p.store.get("stepping", steady::now() + 60s));
  for (auto& rank : p.all) ASSERT_EQ(rank->ended_within(1ms), -1) << rank->why();
  p.all[victim]->signal(number);
  for (uint32_t r = 0; r < p.all.size(); ++r) {
    if (r == victim) continue;
    // After the timeout at the latest; what is longer than that is patience with the machine.
    EXPECT_EQ(p.all[r]->ended_within(timeout + 30s), 1) << "rank " << r << " of " << p.all.size();
    std::string why = p.all[r]->why();
    EXPECT_NE(why.find(number == SIGSTOP ? "did not answer within 1500 ms" : "gone"),
              std::string::npos)
        << "rank " << r << ": " << why;
  }
}

TEST(RankProcessFaults, EndEveryOtherRankWhenOneIsKilled) {
  expect_all_end({2, 1}, 1, SIGKILL);
  expect_all_end({2, 2}, 3, SIGKILL);
  expect_all_end({4, 1}, 2, SIGKILL);
}

TEST(RankProcessFaults, EndEveryOtherRankWhenTheLeaderIsKilled) {
  expect_all_end({2, 2}, 0, SIGKILL);
}

TEST(RankProcessFaults, EndEveryOtherRankWhenOneIsStopped) {
  expect_all_end({2, 1}, 1, SIGSTOP);
  expect_all_end({2, 2}, 2, SIGSTOP);
}

TEST(RankProcessFaults, EndIdleRanksWhenTheLeaderIsKilled) {
  std::string path = any_model();
  opened m = open(path);
  cut c{2, 1};
  (void)keys();  // before there are two of us
  pid_t leads = fork();
  if (leads == 0) {
    led r(m, path, c);
    r.others.all[0].release();
    raise(SIGSTOP);
    _exit(0);
  }
  // The process that leads has started the other: both are found by who their parent is.
  int status = 0;
  ASSERT_EQ(waitpid(leads, &status, WUNTRACED), leads);
  ASSERT_TRUE(WIFSTOPPED(status));
  auto family = audit::family_of(leads);
  ASSERT_EQ(family.size(), 2u);
  kill(leads, SIGKILL);
  waitpid(leads, &status, 0);
  for (auto until = steady::now() + 10s; kill(family[1], 0) == 0 && steady::now() < until;)
    std::this_thread::sleep_for(5ms);
  EXPECT_NE(kill(family[1], 0), 0);
}

/// Numbers back to back, wherever.
template <class T>
audit::needle needle_of(const std::vector<T>& values, size_t at, size_t count) {
  return {"numbers", std::string(reinterpret_cast<const char*>(&values[at]), count * sizeof(T))};
}

size_t traces_of(const std::vector<audit::needle>& needles, const processes& others) {
  std::vector<pid_t> all;
  for (const auto& other : others.all) all.push_back(other->pid());
  audit::needle_finder finder(needles);
  audit::memory_search search(finder);
  search.stopped_processes(all);
  EXPECT_GT(search.looked().bytes, 1'000'000u);
  return search.traces().size();
}

/// The leader has its logits before every rank has wiped what it was told of the step.
bool are_soon_gone(const std::vector<audit::needle>& needles, const processes& others) {
  for (auto until = steady::now() + 30s; steady::now() < until;)
    if (traces_of(needles, others) == 0) return true;
  return false;
}

TEST(RankProcessMemory, HoldsNothingOfAStepOnceItIsWiped) {
#ifdef LETHE_SANITIZED
  GTEST_SKIP() << "a sanitizer keeps what was freed";
#endif
  std::string path = any_model();
  opened m = open(path);
  for (cut c : {cut{2, 1}, cut{1, 2}, cut{2, 2}}) {
    auto prompts = rank_prompts(m.vocab());
    auto logits = testing::run(m.weights(), prompts, {});
    led r(m, path, c);
    // Of the last step: the ids that each rank was told, and the logits. Half of a row of them is
    // what a tensor rank computes.
    std::vector<audit::needle> ids{needle_of(prompts[0], 27, 6)}, rows;
    for (size_t at : {size_t{8}, logits[0][30].size() / 2 + 8, logits[0][30].size() - 16})
      rows.push_back(needle_of(logits[0][30], at, 8));
    EXPECT_EQ(traces_of(rows, r.others), 0u);
    manner how = rank_manner(c);
    auto steps = testing::plan_all(prompts, how);
    auto step = [&](const step_plan& plan, const step_data& data) {
      r.leader->submit(plan, data);
      ASSERT_TRUE(r.leader->wait_oldest());
    };
    for (auto& s : steps) step(s->plan, s->data(m.vocab()));
    // The control: until its sequences end, ranks hold what they computed last.
    EXPECT_GT(traces_of(rows, r.others), 0u) << c.tensor << " x " << c.pipeline;
    EXPECT_TRUE(are_soon_gone(ids, r.others)) << c.tensor << " x " << c.pipeline;
    step_plan end;
    for (uint32_t i = 0; i < rank_grid(c).pages; ++i) end.wipes.push_back(i);
    end.wipe_scratch = true;
    step(end, {});
    EXPECT_EQ(traces_of(rows, r.others), 0u) << c.tensor << " x " << c.pipeline;
  }
}

}  // namespace
}  // namespace lethe::e2e
