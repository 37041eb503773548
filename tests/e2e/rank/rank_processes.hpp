#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "actors/cluster/rank_asks.hpp"
#include "runtime/crypto/certificate.hpp"
#include "tests/e2e/engine_run.hpp"
#include "tests/e2e/network.hpp"
#include "tests/e2e/rank/rank_config.hpp"

// Replicas whose ranks are processes of a test.

namespace lethe::e2e {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

inline std::string path_of(const std::string& model) {
  if (model == "ember") return std::string(places::source) + "/models/ember";
  return vectors().empty() ? "" : vectors() / "models" / model;
}

inline std::string any_model() {
  std::string tiny = path_of("llama-tiny");
  return tiny.empty() ? path_of("ember") : tiny;
}

inline std::string text_of(const cut& c) {
  return std::to_string(c.tensor) + " x " + std::to_string(c.pipeline);
}

/// Keys for all ranks of this program.
inline const std::filesystem::path& keys() {
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

struct replica_terms {
  cut ranks;
  std::string model;
  std::chrono::milliseconds timeout = 20s;
  bool protected_link = false;
  std::vector<const net_host*> hosts = {};  // taken in turn; none: all ranks are here
  const char* program = places::rank_program;
  bool stays = false;  // a rank that fails stops itself once it has let go of everything

  const net_host* host_of(uint32_t rank) const {
    return hosts.empty() ? nullptr : hosts[rank % hosts.size()];
  }
  gloo_config gloo_of(uint32_t rank) const {
    auto made = rank_gloo(rank, ranks, protected_link, timeout);
    if (const net_host* host = host_of(rank)) made.address = host->address;
    return made;
  }
};

/// One rank, started; waited for at the latest when it dies.
class rank_process {
 public:
  rank_process(uint32_t rank, rank_store& store, const replica_terms& terms)
      : rank_(std::to_string(rank)), store_(store) {
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    fd_ = owned_fd(ends[0]);
    auto begin = [&] { start(ends[1], words_for(rank, terms)); };
    if (const net_host* host = terms.host_of(rank))
      host->on(begin);
    else
      begin();
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
  bool runs() { return ended_within(1ms) == -1; }
  /// Once it has ended by itself.
  std::string why() {
    if (serves_.joinable()) serves_.join(), serves_ = std::thread([] {});
    return why_within(0s);
  }
  /// Before it ends.
  std::string why_within(std::chrono::milliseconds most) {
    auto told = store_.get(why_of(rank_), steady::now() + most);
    return told ? std::string(as_text(*told)) : "";
  }

 private:
  std::vector<std::string> words_for(uint32_t rank, const replica_terms& terms) const {
    return {terms.program,
            rank_,
            std::to_string(terms.ranks.tensor),
            std::to_string(terms.ranks.pipeline),
            "3",
            std::to_string(terms.timeout.count()),
            terms.protected_link ? "1" : "0",
            terms.model,
            keys(),
            terms.gloo_of(rank).address,
            terms.stays ? "1" : "0"};
  }
  void start(int store_end, std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, store_end, 3);
    check(posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&files);
  }
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
  processes(uint32_t first, const replica_terms& terms) {
    for (uint32_t r = first; r < terms.ranks.tensor * terms.ranks.pipeline; ++r)
      all.push_back(std::make_unique<rank_process>(r, store, terms));
  }
  memory_rank_store store;
  std::vector<std::unique_ptr<rank_process>> all;
};

/// A replica whose leader, in a process of its own, computes the same steps again and again.
struct stepping : processes {
  explicit stepping(const replica_terms& terms) : processes(0, terms) {
    auto told = store.get("stepping", steady::now() + 60s);
    if (!told) throw std::runtime_error(told.why().text + "; " + why());
    for (auto& rank : all) EXPECT_TRUE(rank->runs()) << why();
  }

 private:
  std::string why() {
    std::string text;
    for (auto& rank : all) text += rank->why_within(0s) + "; ";
    return text;
  }
};

/// A replica that this process leads.
struct led {
  led(const opened& m, const replica_terms& terms) : others(1, terms) {
    auto groups = join_rank_groups(terms.gloo_of(0), terms.ranks, others.store);
    if (!groups) throw std::runtime_error(groups.why().text);
    auto started =
        process_ranks::start(m.weights(), rank_grid(terms.ranks), *std::move(groups), false);
    if (!started) throw std::runtime_error(started.why().text);
    leader = *std::move(started);
  }
  processes others;
  std::unique_ptr<process_ranks> leader;
};

}  // namespace lethe::e2e
