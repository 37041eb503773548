// Gateway and issuer die at any moment under load, and start again where they were: no token is
// lost, none is spent twice. LETHE_KILLS says how often (default 4; nightly 100), LETHE_SEED when.
#include <atomic>
#include <climits>
#include <mutex>
#include <random>

#include "tests/e2e/private_path.hpp"

namespace lethe {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

unsigned asked_for(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text ? unsigned(std::atoi(text)) : otherwise;
}

double now_s() {
  return std::chrono::duration<double>(test_clock::now().time_since_epoch()).count();
}

/// The number before `word` in what the program said.
uint64_t number_before(const std::string& said, const std::string& word) {
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
      std::this_thread::sleep_for(milliseconds(10));
      auto said = read_file(out);
      if (said.ends_with('\n')) port_ = uint16_t(std::atoi(said.c_str() + said.rfind(':') + 1));
    }
    EXPECT_NE(port_, 0) << read_file(err);
  }
  ~running_proxy() {
    ::kill(pid_, SIGTERM);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << read_file(folder_ / "err");
  }
  running_proxy(const running_proxy&) = delete;
  running_proxy& operator=(const running_proxy&) = delete;

  uint16_t port() const { return port_; }

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
      if (pause_ms > 0) std::this_thread::sleep_for(milliseconds(random() % unsigned(pause_ms)));
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
  fs::path folder;
  std::string trust() const { return folder / "client.toml"; }
  std::string account() const { return folder / "account.secret"; }
};

/// A client's tokens, when its wallet and an old copy of it were spent to their ends. Each token
/// that was bought is answered for once, by itself or by the change that came of it.
struct books {
  uint64_t bought = 0;
  uint64_t answered = 0;  // while things died
  uint64_t left = 0;      // in the wallet afterwards, nothing open
  uint64_t copied = 0;    // in the copy that was made before
  endings copy, rest;     // what became of these, asked first, and of those

  int64_t lost() const { return int64_t(bought) - int64_t(answered) - int64_t(left); }
  /// Nothing if they are right.
  std::string wrong() const {
    std::string all;
    auto claim = [&](bool good, const char* what) { all += good ? "" : std::string(what) + "; "; };
    claim(lost() <= 0, "a token was lost");
    claim(lost() >= 0, "a token came from nowhere");
    claim(copy.paid() == copied, "a copied token was neither answered nor refused");
    claim(rest.paid() == left, "a token that was left was neither answered nor refused");
    claim(answered + copy.whole + rest.whole <= bought, "a token was spent twice");
    claim(copy.whole + rest.whole >= left, "a token that was not spent was refused");
    return all;
  }
  std::string text() const {
    return std::to_string(bought) + " bought = " + std::to_string(answered) + " answered + " +
           std::to_string(left) + " left + " + std::to_string(lost()) + " lost; of " +
           std::to_string(copied) + " in a copy from before " + copy.text() + "; of those left " +
           rest.text();
  }
};

class PrivateKills : public PrivatePath {
 protected:
  PrivateKills() {
    tapped_ = false;
    batch_ = 16;
  }
  void SetUp() override {
    PrivatePath::SetUp();
    if (HasFatalFailure()) return;
    auto at = [](const running_cluster& c, const char* role) {
      return "127.0.0.1:" + std::to_string(c.port(role));
    };
    issuer_->folder().write("cluster.toml", issuer_config(at(*issuer_, "issuer")));
    folder_.write("gateway.toml", gateway_config(at(*gateway_, "gateway")));
  }

  /// Whoever is dead when it is to be killed ended by itself.
  void kill_part(running_cluster& part) {
    ASSERT_EQ(::waitpid(part.pid, nullptr, WNOHANG), 0) << part.errors();
    ::kill(part.pid, SIGKILL);
    ::waitpid(part.pid, nullptr, 0);
    part.pid = -1;
  }
  void start_again(running_cluster& part) {
    part.start(&part == &*gateway_ ? std::vector<std::string>{"--host", "local"}
                                   : std::vector<std::string>{});
  }
  void all_is_up() {
    ASSERT_TRUE(issuer_->tells("ready")) << issuer_->errors();
    ASSERT_TRUE(gateway_->tells("ready")) << gateway_->errors();
    for (int i = 0; i < 300 && run_lethe({"tokens", "claim", trust_}).exit_code != 0; ++i)
      std::this_thread::sleep_for(milliseconds(100));
    auto said = run_lethe({"tokens", "claim", trust_});
    ASSERT_EQ(said.exit_code, 0) << said.err << gateway_->errors();
  }

  buyer make_buyer(const std::string& name) {
    buyer b{name, fs::path(folder_ / name)};
    fs::create_directory(b.folder);
    fs::copy(trust_, b.trust());
    auto added = run_lethe(
        {"account", "add", issuer_->file, name, "--quota", "1000000", "--out", b.account()});
    EXPECT_EQ(added.exit_code, 0) << added.err;
    return b;
  }
  /// The proxy buys on a timer; whoever has no account any more does not.
  buyer make_buyer_with(const std::string& name, unsigned batches) {
    auto b = make_buyer(name);
    for (unsigned n = 0; batches > 0; batches -= n) {
      n = std::min(batches, 64u);
      auto bought = run_lethe({"tokens", "buy", b.trust(), "--batches", std::to_string(n)});
      EXPECT_EQ(bought.exit_code, 0) << bought.err;
    }
    fs::remove(b.account());
    return b;
  }
  /// What the issuer has charged.
  uint64_t bought_by(const buyer& b) {
    std::istringstream lines(run_lethe({"account", "list", issuer_->file}).out);
    std::string line, name;
    uint64_t quota = 0, bought = 0;
    while (std::getline(lines, line))
      if (std::istringstream words(line); words >> name >> quota >> bought && name == b.name)
        return bought;
    return UINT64_MAX;
  }
  static uint64_t tokens_of(const buyer& b) {
    return number_before(run_lethe({"tokens", "count", b.trust()}).out, "tokens");
  }
  static uint64_t open_of(const buyer& b) {
    return number_before(run_lethe({"tokens", "count", b.trust()}).out, "were shown");
  }
  static buyer copy_of(const buyer& b) {
    buyer copy{b.name, fs::path(b.folder.string() + "-copy")};
    fs::create_directory(copy.folder);
    for (const auto& f : fs::directory_iterator(b.folder))
      fs::copy(f, copy.folder / f.path().filename());
    return copy;
  }
  /// Until nothing is open any more.
  static void claim_all(const buyer& b) {
    std::string last;
    for (int i = 0; i < 100 && open_of(b) != 0; ++i) {
      auto said = run_lethe({"tokens", "claim", b.trust()});
      last = said.out + said.err;
      std::printf("%s claims: %s", b.name.c_str(), last.c_str());
      std::this_thread::sleep_for(milliseconds(100));
    }
    EXPECT_EQ(open_of(b), 0u) << last;
  }
  static endings spend_all(const buyer& b) {
    running_proxy proxy(b.trust());
    return askers(proxy.port(), 4, 0, true).wait();
  }
  /// All is up, and whoever asked has ended.
  books close(const buyer& b, const buyer& copy, uint64_t answered) {
    claim_all(b);
    books all{.bought = bought_by(b), .answered = answered, .left = tokens_of(b)};
    all.copied = tokens_of(copy);
    all.copy = spend_all(copy);
    all.rest = spend_all(b);
    return all;
  }
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
    buyer b{of_.name, fs::path(of_.folder.string() + "-" + std::to_string(wallets_.size()))};
    fs::create_directory(b.folder);
    fs::copy(of_.trust(), b.trust());
    fs::copy(of_.account(), b.account());
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
      std::this_thread::sleep_for(milliseconds(20));
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
      if (said.exit_code == 0)
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

TEST_F(PrivateKills, NoTokenIsLostAndNoneIsSpentTwice) {
  const unsigned kills = asked_for("LETHE_KILLS", 4);
  std::mt19937 random(asked_for("LETHE_SEED", 4711));
  auto pause = [&random](unsigned ms) { std::this_thread::sleep_for(milliseconds(random() % ms)); };
  auto one = make_buyer_with("one", 4 + kills);
  auto two = make_buyer_with("two", 2 + kills / 2);
  auto copy_one = copy_of(one), copy_two = copy_of(two);
  purchases buying(make_buyer("three"));
  fetches fetching(two);
  std::optional<running_proxy> proxy(std::in_place, one.trust());
  askers asking(proxy->port(), 4, 600, false);

  std::vector<double> issuer_kills;
  unsigned gateway_kills = 0;
  for (unsigned i = 0; i < kills; ++i) {
    // Some die while they start, the others once answers have come again.
    const uint64_t before = asking.whole();
    for (int n = 0; i % 4 != 3 && n < 300 && asking.whole() < before + 3; ++n)
      std::this_thread::sleep_for(milliseconds(100));
    pause(1000);
    const bool gateway = i % 2 == 0;
    auto& part = gateway ? *gateway_ : *issuer_;
    gateway ? void(++gateway_kills) : issuer_kills.push_back(now_s());
    ASSERT_NO_FATAL_FAILURE(kill_part(part));
    pause(400);
    start_again(part);
  }
  ASSERT_NO_FATAL_FAILURE(all_is_up());
  const uint64_t before = asking.whole();
  for (int n = 0; n < 300 && asking.whole() < before + 3; ++n)
    std::this_thread::sleep_for(milliseconds(100));
  buying.end();
  auto fetched = fetching.end();
  auto asked = asking.end();
  proxy.reset();
  std::printf("%u gateways and %zu issuers killed; asked: %s; fetched: %s\n", gateway_kills,
              issuer_kills.size(), asked.text().c_str(), fetched.text().c_str());
  EXPECT_GT(asked.whole, 3 * kills / 2);
  EXPECT_GT(fetched.whole, 0u);
  EXPECT_EQ(asked.spent_before + fetched.spent_before, 0u);

  for (auto& [who, copy, answered] :
       {std::tuple(one, copy_one, asked.whole), std::tuple(two, copy_two, fetched.whole)}) {
    auto all = close(who, copy, answered);
    std::printf("%s: %s\n", who.name.c_str(), all.text().c_str());
    EXPECT_EQ(all.wrong(), "") << all.text();
  }

  // The one loss that there is: a purchase that was charged when the issuer died.
  uint64_t has = 0;
  for (const auto& b : buying.wallets()) has += tokens_of(b);
  auto charged = bought_by(buying.wallets().front());
  auto struck = std::ranges::count_if(buying.failed(), [&](const span_s& s) {
    return std::ranges::any_of(issuer_kills, [&](double t) { return s.from <= t && t <= s.to; });
  });
  std::printf(
      "purchases: %u good, %zu failed, %zd of them as the issuer died; %lu charged, %lu had\n",
      buying.good(), buying.failed().size(), struck, charged, has);
  EXPECT_EQ(has, buying.good() * batch_);
  EXPECT_GE(charged, has);
  EXPECT_EQ((charged - has) % batch_, 0u);
  EXPECT_LE((charged - has) / batch_, uint64_t(struck));
}

/// The control of the test above: a gateway that comes back without its spends.
TEST_F(PrivateKills, SpendsThatAreForgottenAreNoticed) {
  auto one = make_buyer_with("one", 1);
  auto copy = copy_of(one);
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(run_lethe({"fetch", one.trust(), "--prompt", std::to_string(i)}).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(kill_part(*gateway_));
  for (const char* end : {"", "-wal", "-shm"}) fs::remove(folder_ / "gateway/spends.db" + end);
  start_again(*gateway_);
  ASSERT_NO_FATAL_FAILURE(all_is_up());
  auto all = close(one, copy, 3);
  EXPECT_EQ(all.wrong(), "a token was spent twice; ") << all.text();
  EXPECT_EQ(all.copy.whole, 16u);
  EXPECT_EQ(all.rest.spent_before, 13u);
}

}  // namespace
}  // namespace lethe
