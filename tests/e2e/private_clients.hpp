#pragma once

#include <atomic>
#include <climits>
#include <mutex>
#include <random>

#include "tests/e2e/private_path.hpp"

namespace lethe {

inline unsigned asked_for(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text ? unsigned(std::atoi(text)) : otherwise;
}

inline double now_s() {
  return std::chrono::duration<double>(test_clock::now().time_since_epoch()).count();
}

/// The number before `word` in what the program said.
inline uint64_t number_before(const std::string& said, const std::string& word) {
  auto at = said.find(" " + word);
  if (at == said.npos) return UINT64_MAX;
  auto from = said.find_last_not_of("0123456789", at - 1);
  return std::strtoull(said.c_str() + (from == said.npos ? 0 : from + 1), nullptr, 10);
}

/// How requests ended, as their clients know it.
struct endings {
  uint64_t whole = 0, spent_before = 0, no_tokens = 0;
  std::map<std::string, uint64_t> other;

  uint64_t paid() const { return whole + spent_before; }
  std::string text() const {
    std::string all = std::to_string(whole) + " whole, " + std::to_string(spent_before) +
                      " spent before, " + std::to_string(no_tokens) + " without a token";
    for (const auto& [why, n] : other) all += ", " + std::to_string(n) + " " + why;
    return all;
  }
};

/// `lethe proxy`, for as long as this lives.
class running_proxy {
 public:
  explicit running_proxy(const std::string& trust) {
    std::string out = folder_ / "out", err = folder_ / "err";
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
    const char* words[] = {places::program, "proxy",       trust.c_str(),
                           "--listen",      "127.0.0.1:0", nullptr};
    posix_spawn(&pid_, places::program, &files, nullptr, const_cast<char**>(words), environ);
    posix_spawn_file_actions_destroy(&files);
    for (int i = 0; i < 3000 && port_ == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      auto said = read_file(out);
      if (said.ends_with('\n')) port_ = uint16_t(std::atoi(said.c_str() + said.rfind(':') + 1));
    }
    EXPECT_NE(port_, 0) << read_file(err);
  }
  ~running_proxy() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGTERM);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << read_file(folder_ / "err");
  }
  running_proxy(const running_proxy&) = delete;
  running_proxy& operator=(const running_proxy&) = delete;

  uint16_t port() const { return port_; }
  /// It must not have ended before.
  void kill() {
    EXPECT_EQ(::waitpid(pid_, nullptr, WNOHANG), 0) << read_file(folder_ / "err");
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  scratch_folder folder_;
  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

/// Threads that ask a proxy, each its next request when the last has ended.
class askers {
 public:
  askers(uint16_t proxy, int threads, int pause_ms, bool until_empty) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([=, this] { run(proxy, unsigned(i), pause_ms, until_empty); });
  }
  ~askers() { end(); }
  endings end() {
    stop_ = true;
    return wait();
  }
  endings wait() {
    for (auto& t : threads_) t.join();
    threads_.clear();
    return seen_;
  }
  uint64_t whole() const {
    std::lock_guard guard(lock_);
    return seen_.whole;
  }

 private:
  void run(uint16_t proxy, unsigned thread, int pause_ms, bool until_empty) {
    std::mt19937 random(thread);
    const unsigned most = until_empty ? 4096 : UINT_MAX;  // what a wallet holds
    for (unsigned i = 0; !stop_ && i < most; ++i) {
      auto about =
          std::to_string(thread) + "." + std::to_string(i);  // a body is shown only so often
      auto said = http_ask(proxy, "/v1/chat/completions",
                           R"({"model":"ember","max_tokens":8,"messages":[{"role":"user",)"
                           R"("content":"What is )" +
                               about + R"(?"}]})");
      if (count(said) && until_empty) return;
      if (pause_ms > 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % unsigned(pause_ms)));
    }
  }
  /// Whether the wallet is empty.
  bool count(const http_said& said) {
    std::lock_guard guard(lock_);
    if (said.status == 200 && has(said.body, "\"usage\"")) return ++seen_.whole, false;
    if (said.status == 402 && has(said.body, "spent before")) return ++seen_.spent_before, false;
    if (said.status == 402 && has(said.body, "wallet has none")) return ++seen_.no_tokens, true;
    auto at = said.body.find("\"code\":\"");
    auto code = at == said.body.npos
                    ? "status " + std::to_string(said.status)
                    : said.body.substr(at + 8, said.body.find('"', at + 8) - at - 8);
    ++seen_.other[code];
    return false;
  }

  std::atomic<bool> stop_{false};
  mutable std::mutex lock_;
  endings seen_;
  std::vector<std::thread> threads_;
};

struct span_s {
  double from = 0, to = 0;
};

/// Somebody with an account and a wallet, in a folder of their own.
struct buyer {
  std::string name;
  std::filesystem::path folder;
  std::string trust() const { return folder / "client.toml"; }
  std::string account() const { return folder / "account.secret"; }
};

/// Buys all the time; each wallet that is full makes room for another.
class purchases {
 public:
  explicit purchases(buyer of) : of_(std::move(of)), thread_([this] { run(); }) {}
  ~purchases() { end(); }
  void end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  const std::vector<buyer>& wallets() const { return wallets_; }
  const std::vector<span_s>& failed() const { return failed_; }
  unsigned good() const { return good_; }

 private:
  void next_wallet() {
    buyer b{of_.name,
            std::filesystem::path(of_.folder.string() + "-" + std::to_string(wallets_.size()))};
    std::filesystem::create_directory(b.folder);
    std::filesystem::copy(of_.trust(), b.trust());
    std::filesystem::copy(of_.account(), b.account());
    wallets_.push_back(std::move(b));
  }
  void run() {
    while (!stop_) {
      if (good_ % 200 == 0) next_wallet();
      span_s one{.from = now_s()};
      auto said = run_lethe({"tokens", "buy", wallets_.back().trust()});
      one.to = now_s();
      if (said.exit_code == 0)
        ++good_;
      else
        failed_.push_back(one);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  buyer of_;
  std::vector<buyer> wallets_;
  std::vector<span_s> failed_;
  unsigned good_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// `lethe fetch`, one after the other: each claims the change of what failed at once.
class fetches {
 public:
  explicit fetches(buyer of) : of_(std::move(of)), thread_([this] { run(); }) {}
  ~fetches() { end(); }
  endings end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return seen_;
  }

 private:
  void run() {
    for (unsigned i = 0; !stop_; ++i) {
      auto about = "What is " + std::to_string(i) + "?";
      auto said = run_lethe({"fetch", of_.trust(), "--prompt", about});
      if (said.exit_code == 0 || has(said.err, "the answer is whole"))
        ++seen_.whole;
      else if (has(said.err, "spent before"))
        ++seen_.spent_before;
      else if (has(said.err, "wallet has none"))
        ++seen_.no_tokens;
      else
        ++seen_.other["failed"];
    }
  }

  buyer of_;
  endings seen_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace lethe
