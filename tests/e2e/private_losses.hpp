#pragma once

#include "tests/e2e/private_clients.hpp"

namespace lethe {

/// A client's tokens, when its wallet and an old copy of it were spent to their ends. Each token
/// that was bought is answered for once, by itself or by the change that came of it.
struct books {
  uint64_t bought = 0;
  uint64_t answered = 0;  // while things died
  uint64_t left = 0;      // in the wallet afterwards, nothing open
  uint64_t copied = 0;    // in the copy that was made before
  uint64_t unseen = 0;    // answers that may have come when their client was gone
  endings copy, rest;     // what became of these, asked first, and of those

  int64_t lost() const { return int64_t(bought) - int64_t(answered) - int64_t(left); }
  /// Nothing if they are right.
  std::string wrong() const {
    std::string all;
    auto claim = [&](bool good, const char* what) { all += good ? "" : std::string(what) + "; "; };
    claim(lost() <= int64_t(unseen), "a token was lost");
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

/// The private path under load, while gateway and issuer fall and rise again. LETHE_SEED says when.
class PrivateLosses : public PrivatePath {
 protected:
  PrivateLosses() {
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
  /// How a part ends here.
  virtual void fall(running_cluster& part) { kill_part(part); }
  void start_again(running_cluster& part) {
    part.start(&part == &*gateway_ ? std::vector<std::string>{"--host", "local"}
                                   : std::vector<std::string>{});
  }
  void all_is_up() {
    ASSERT_TRUE(issuer_->tells("ready")) << issuer_->errors();
    ASSERT_TRUE(gateway_->tells("ready")) << gateway_->errors();
    finished said;
    for (int i = 0; i < 300; ++i, pause_ms(100)) {  // a roster of engines that are gone comes first
      said = ask("Are you there? " + std::to_string(i));
      if (said.exit_code == 0) return;
      if (has(said.err, "wallet has none")) run_lethe({"tokens", "buy", trust_});
    }
    FAIL() << said.err << gateway_->errors();
  }

  buyer make_buyer(const std::string& name) {
    buyer b{name, std::filesystem::path(client_disk_ + name)};
    std::filesystem::create_directory(b.folder);
    std::filesystem::copy(trust_, b.trust());
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
    std::filesystem::remove(b.account());
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
    buyer copy{b.name, std::filesystem::path(b.folder.string() + "-copy")};
    std::filesystem::create_directory(copy.folder);
    for (const auto& f : std::filesystem::directory_iterator(b.folder))
      std::filesystem::copy(f, copy.folder / f.path().filename());
    return copy;
  }
  /// Until nothing is open any more.
  static void claim_all(const buyer& b) {
    std::string last;
    for (int i = 0; i < 100 && open_of(b) != 0; ++i) {
      auto said = run_lethe({"tokens", "claim", b.trust()});
      last = said.out + said.err;
      std::printf("%s claims: %s", b.name.c_str(), last.c_str());
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_EQ(open_of(b), 0u) << last;
  }
  static endings spend_all(const buyer& b) {
    running_proxy proxy(b.trust());
    return askers(proxy.port(), 4, 0, true).wait();
  }
  /// All is up, and whoever asked has ended.
  void close(const buyer& b, const buyer& copy, books& all) {
    claim_all(b);
    all.bought = bought_by(b);
    all.left = tokens_of(b);
    all.copied = tokens_of(copy);
    all.copy = spend_all(copy);
    all.rest = spend_all(b);
  }

  bool is_gateway(const running_cluster& part) const { return &part == &*gateway_; }
  static void wait_for_three_more(const askers& asking) {
    const uint64_t before = asking.whole();
    for (int n = 0; n < 300 && asking.whole() < before + 3; ++n) pause_ms(100);
  }
  static void pause_ms(unsigned ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
  /// Gateway and issuer by turns; the times when the issuer did.
  void let_fall(unsigned times, const askers& asking, std::vector<double>& issuer_falls) {
    for (unsigned i = 0; i < times; ++i) {
      if (i % 4 != 3) wait_for_three_more(asking);  // the others fall while they start
      pause_ms(random_() % 1000);
      auto& part = i % 2 == 0 ? *gateway_ : *issuer_;
      if (!is_gateway(part)) issuer_falls.push_back(now_s());
      ASSERT_NO_FATAL_FAILURE(fall(part));
      pause_ms(random_() % 400);
      start_again(part);
    }
    ASSERT_NO_FATAL_FAILURE(all_is_up());
    wait_for_three_more(asking);
  }
  /// The one loss that there is: a purchase that was charged when the issuer fell.
  void check_purchases(const purchases& buying, const std::vector<double>& issuer_falls) {
    uint64_t has = 0;
    for (const auto& b : buying.wallets()) has += tokens_of(b);
    auto charged = bought_by(buying.wallets().front());
    auto struck = std::ranges::count_if(buying.failed(), [&](const span_s& s) {
      return std::ranges::any_of(issuer_falls, [&](double t) { return s.from <= t && t <= s.to; });
    });
    std::printf(
        "purchases: %u good, %zu failed, %zd of them as the issuer fell; %lu charged, %lu had\n",
        buying.good(), buying.failed().size(), struck, charged, has);
    EXPECT_EQ(has, buying.good() * batch_);
    EXPECT_GE(charged, has);
    EXPECT_EQ((charged - has) % batch_, 0u);
    EXPECT_LE((charged - has) / batch_, uint64_t(struck));
  }
  static void expect_no_evidence(const buyer& b) {
    EXPECT_FALSE(std::filesystem::exists(b.trust() + ".evidence")) << "the log told two stories";
  }

  void no_token_is_lost_and_none_is_spent_twice(unsigned falls) {
    auto one = make_buyer_with("one", 4 + falls);
    auto two = make_buyer_with("two", 2 + falls / 2);
    auto copy_one = copy_of(one), copy_two = copy_of(two);
    purchases buying(make_buyer("three"));
    fetches fetching(two);
    std::optional<running_proxy> proxy(std::in_place, one.trust());
    askers asking(proxy->port(), 4, 600, false);

    std::vector<double> issuer_falls;
    ASSERT_NO_FATAL_FAILURE(let_fall(falls, asking, issuer_falls));
    buying.end();
    auto fetched = fetching.end();
    auto asked = asking.end();
    proxy.reset();
    std::printf("%u falls, %zu of the issuer; asked: %s; fetched: %s\n", falls, issuer_falls.size(),
                asked.text().c_str(), fetched.text().c_str());
    EXPECT_GT(asked.whole, 3 * falls / 2);
    EXPECT_GT(fetched.whole, 0u);
    EXPECT_EQ(asked.spent_before + fetched.spent_before, 0u);
    for (const auto& b : {one, two, buying.wallets().back()}) expect_no_evidence(b);

    for (auto& [who, copy, answered] :
         {std::tuple(one, copy_one, asked.whole), std::tuple(two, copy_two, fetched.whole)}) {
      books all{.answered = answered};
      close(who, copy, all);
      std::printf("%s: %s\n", who.name.c_str(), all.text().c_str());
      EXPECT_EQ(all.wrong(), "") << all.text();
    }
    check_purchases(buying, issuer_falls);
  }

  std::string client_disk_ = folder_ / "";
  std::mt19937 random_{asked_for("LETHE_SEED", 4711)};
};

}  // namespace lethe
