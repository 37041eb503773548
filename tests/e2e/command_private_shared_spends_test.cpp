// Two clusters, each with a gateway, a log and a relay of its own, that take the same tokens: what
// was spent lies in one Redis.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/e2e/private_path.hpp"
#include "tests/e2e/running_lethe.hpp"
#include "tests/redis_process.hpp"

namespace lethe {
namespace {

namespace fs = std::filesystem;

class SharedSpends : public PrivatePath {
 protected:
  void SetUp() override {
    tapped_ = false;
    shared_ = "origin = \"ours\"\nredis = \"" + redis_.url() + "\"\n";
    gateway_more_ = shared_ + "log = \"one\"\n" + more_;
    PrivatePath::SetUp();
    if (HasFatalFailure()) return;
    gateway_more_ = shared_ + "log = \"two\"\n";
    second_file_ = folder_.write("second.toml", gateway_config("127.0.0.1:0", "second", "second"));
    start_second();
    ASSERT_TRUE(second_->tells("ready")) << second_->errors();
    auto relay = relay_config(second_->port("gateway"));
    relay.replace(relay.find("relay"), 5, "relay2");
    second_relay_.emplace(host_of{folder_.write("relay2.toml", relay), "local"});
    ASSERT_TRUE(second_relay_->tells("ready")) << second_relay_->errors();
    trust2_ = trust_for(second_file_, second_relay_->port("relay"), "client2.toml");
    std::swap(gateway_file_, second_file_);
    ASSERT_TRUE(roster_is_out());
    std::swap(gateway_file_, second_file_);
  }
  void start_second() { second_.emplace(host_of{second_file_, "local"}); }

  /// A folder with a copy of all that a client has.
  fs::path copy_of_client(const std::string& name) const {
    fs::path to = folder_ / name;
    fs::create_directory(to);
    for (const auto& f : fs::directory_iterator(folder_ / "")) {
      auto file = f.path().filename().string();
      bool kept =
          file.starts_with("wallet") || file == "account.secret" || file.starts_with("client");
      if (kept && !file.ends_with(".lock")) fs::copy(f.path(), to / file);
    }
    return to;
  }
  std::string tokens(const std::string& trust) const {
    auto said = run_lethe({"tokens", "count", trust});
    EXPECT_EQ(said.exit_code, 0) << said.err;
    return said.out.substr(0, said.out.find(';'));
  }
  std::string claims(const std::string& trust) const {
    auto said = run_lethe({"tokens", "claim", trust});
    EXPECT_EQ(said.exit_code, 0) << said.err;
    return said.out;
  }

  scratch_folder redis_folder_;
  redis_process redis_{redis_folder_ / ""};
  std::string shared_, more_;
  std::optional<running_cluster> second_, second_relay_;
  std::string second_file_, trust2_;
};

TEST_F(SharedSpends, AWalletPaysAtBothAndRemembersBothLogs) {
  buy();
  for (int i = 0; i < 2; ++i)
    for (const auto& trust : {trust_, trust2_}) {
      auto said = run_lethe({"fetch", trust, "--prompt", "What is a river?"});
      ASSERT_EQ(said.exit_code, 0) << said.err;
    }
  EXPECT_EQ(tokens(trust2_), "60 tokens");
}

class OneToken : public SharedSpends {
 protected:
  OneToken() { batch_ = 1; }
};

TEST_F(OneToken, ThatWasSpentAtOneIsRefusedAtTheOther) {
  ASSERT_EQ(run_lethe({"tokens", "buy", trust_}).exit_code, 0);
  auto copy = copy_of_client("copy");
  ASSERT_EQ(ask("Hello").exit_code, 0);
  auto said = run_lethe({"fetch", copy / "client2.toml", "--prompt", "Hello"});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "it was spent before")) << said.err;
  EXPECT_EQ(tokens(copy / "client2.toml"), "0 tokens");
}

TEST_F(OneToken, OfThirtyTwoClientsWhoShowItAtBothOneIsAnswered) {
  ASSERT_EQ(run_lethe({"tokens", "buy", trust_}).exit_code, 0);
  ASSERT_EQ(tokens(trust_), "1 tokens");
  std::vector<fs::path> clients;
  for (int i = 0; i < 32; ++i)
    clients.push_back(copy_of_client("c" + std::to_string(i)) /
                      (i % 2 ? "client.toml" : "client2.toml"));
  std::vector<std::unique_ptr<running_lethe>> all;
  for (const auto& c : clients)
    all.push_back(std::make_unique<running_lethe>(
        std::vector<std::string>{"fetch", c.string(), "--prompt", "What is a river?"}));
  int answered = 0, refused = 0;
  for (auto& one : all) {
    auto said = one->wait();
    answered += said.exit_code == 0;
    refused += said.exit_code == 1 && has(said.err, "it was spent before");
    EXPECT_TRUE(said.exit_code == 0 || has(said.err, "it was spent before")) << said.err;
  }
  EXPECT_EQ(answered, 1);
  EXPECT_EQ(refused, 31);
}

/// A request that waits at the first gateway, in an engine that stands still.
class OneWaits : public SharedSpends {
 protected:
  OneWaits() { more_ = "[engines]\nprocesses = \"separate\"\n[health]\nlost_after_ms = 600000\n"; }
  void TearDown() override {
    if (engine_ > 0) ::kill(engine_, SIGCONT);
  }
  void wait_there() {
    json_answer status(run_lethe({"status", "--json", "--cluster", gateway_file_}).out);
    ASSERT_TRUE(status.valid);
    engine_ = pid_t(status.root["engines"].get_array().at(0)["pid"].get_uint64().value_unsafe());
    ASSERT_GT(engine_, 0);
    ::kill(engine_, SIGSTOP);
    waits_.emplace(std::vector<std::string>{"fetch", trust_, "--prompt", "What is a river?"});
    ASSERT_TRUE(gateway_counts("spent", 1));
  }
  pid_t engine_ = 0;
  std::optional<running_lethe> waits_;
};

/// What a gateway finds open when it starts is its own: nobody is given change for a request that
/// another gateway still answers.
TEST_F(OneWaits, AnotherGatewaysStartMakesNoChangeDue) {
  buy();
  ASSERT_NO_FATAL_FAILURE(wait_there());
  auto copy = copy_of_client("copy");
  ::kill(second_->pid, SIGKILL);
  ::waitpid(std::exchange(second_->pid, -1), nullptr, 0);
  // Its relay knows its port.
  auto text = read_file(second_file_);
  text.replace(text.find("127.0.0.1:0"), 11,
               "127.0.0.1:" + std::to_string(second_->port("gateway")));
  second_file_ = folder_.write("second.toml", text);
  start_second();
  ASSERT_TRUE(second_->tells("ready")) << second_->errors();
  finished said;
  for (int i = 0; i < 300 && said.exit_code != 0; ++i) {
    said = run_lethe({"tokens", "claim", copy / "client2.toml"});
    if (said.exit_code != 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(said.out,
            "0 changed, nothing due for 0, 1 to ask for later; the wallet has 63 tokens\n")
      << said.err;
  ::kill(engine_, SIGCONT);
  EXPECT_EQ(waits_->wait().exit_code, 0);
  std::string told;  // outcomes are written a little after the answer
  for (int i = 0; i < 300 && !has(told, "0 to ask for later"); ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    told = claims(copy / "client2.toml");
  }
  EXPECT_TRUE(has(told, "0 changed, nothing due for 1,")) << told;
}

/// Only its own start tells that a gateway has died: until then nobody knows whether it answers.
TEST_F(OneWaits, WhatAKilledGatewayLeftOpenIsDueAtBothWhenItIsBack) {
  buy();
  ASSERT_NO_FATAL_FAILURE(wait_there());
  uint64_t before = gateway_count("roster");
  uint16_t port = gateway_->port("gateway");
  ::kill(gateway_->pid, SIGKILL);
  ::waitpid(std::exchange(gateway_->pid, -1), nullptr, 0);
  ::kill(std::exchange(engine_, 0), SIGCONT);
  EXPECT_EQ(waits_->wait().exit_code, 1);
  EXPECT_EQ(claims(trust2_),
            "0 changed, nothing due for 0, 1 to ask for later; the wallet has 63 tokens\n");
  EXPECT_EQ(run_lethe({"fetch", trust2_, "--prompt", "Hello"}).exit_code, 0);
  gateway_more_ = shared_ + "log = \"one\"\n" + more_;
  start_gateway("127.0.0.1:" + std::to_string(port));
  ASSERT_TRUE(roster_is_out(before));
  EXPECT_EQ(claims(trust2_),
            "1 changed, nothing due for 0, 0 to ask for later; the wallet has 63 tokens\n");
  EXPECT_EQ(run_lethe({"fetch", trust_, "--prompt", "Hello"}).exit_code, 0);
}

TEST_F(SharedSpends, WithoutRedisRequestsAreRefusedAndNoTokenIsLost) {
  buy();
  ASSERT_EQ(ask("Hello").exit_code, 0);
  redis_.kill();
  auto said = ask("Hello");
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "spent tokens can't be recorded")) << said.err;
  auto complains = [&](bool wanted) {
    for (int i = 0; i < 100; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(100)))
      if (has(run_lethe({"status", "--cluster", gateway_file_}).out,
              "spent tokens: unix:" + redis_.socket()) == wanted)
        return true;
    return false;
  };
  EXPECT_TRUE(complains(true));
  redis_.start();
  for (int i = 0; i < 300 && !has(claims(trust2_), "0 to ask for later"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(tokens(trust_), "63 tokens");
  EXPECT_EQ(ask("What is a river?").exit_code, 0);
  EXPECT_TRUE(complains(false));
}

TEST_F(PrivatePath, ARedisThatCouldForgetIsRefusedAtTheStart) {
  scratch_folder folder;
  redis_process forgetful(folder / "", {"--appendfsync", "everysec"});
  gateway_more_ = "redis = \"" + forgetful.url() + "\"\n";
  auto file = folder_.write("other.toml", gateway_config("127.0.0.1:0", "other", "other"));
  auto said = run_lethe({"up", file});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "appendfsync")) << said.err;
  EXPECT_TRUE(has(said.err, "always")) << said.err;
}

}  // namespace
}  // namespace lethe
