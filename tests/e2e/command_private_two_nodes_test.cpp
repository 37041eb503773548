// A policy of k = 2, with processes: each request is sealed to two nodes that the client drew.
#include <gtest/gtest.h>
#include <map>

#include <functional>

#include "tests/e2e/private_path.hpp"
#include "tests/e2e/running_lethe.hpp"

namespace lethe {
namespace {

/// What `--explain` says of the last draw.
struct explained {
  std::string first, second, answered;
};
std::string word_behind(const std::string& text, const std::string& what) {
  size_t at = text.rfind(what);
  return at == text.npos ? "" : text.substr(at + what.size(), 8);
}
explained read_explained(const std::string& err) {
  explained e{word_behind(err, " draw           nodes "), {}, word_behind(err, " from node ")};
  e.second = word_behind(err, "nodes " + e.first + " and ");
  return e;
}

struct engine_seen {
  pid_t pid = 0;
  uint64_t generated = 0;
};

/// Two engines in processes of their own, each with room for one request; one that stands still is
/// not missed.
class TwoNodes : public PrivatePath {
 protected:
  void SetUp() override {
    tapped_ = false;
    profile_ = "session";  // strict takes one node only
    batching_ = "queue = 0\nrunning = 1\n";
    gateway_more_ =
        "candidates = 2\nminimum_nodes = 2\n"
        "[engines]\ncount = 2\nprocesses = \"separate\"\n"
        "[health]\nlost_after_ms = 600000\nrestart_ms = 600000\nrestart_max_ms = 600000\n";
    PrivatePath::SetUp();
    if (HasFatalFailure()) return;
    auto known = [&] { return run_lethe({"tokens", "claim", trust_}).exit_code == 0; };
    ASSERT_TRUE(eventually(known)) << "no roster of two nodes";
    buy();
  }
  void TearDown() override {
    if (still_pid_ > 0) ::kill(still_pid_, SIGCONT);
  }

  json_answer status() const {
    return json_answer(run_lethe({"status", "--json", "--cluster", gateway_file_}).out);
  }
  std::vector<engine_seen> engines() const {
    std::vector<engine_seen> all;
    auto s = status();
    if (!s.valid) return all;
    for (auto e : s.root["engines"].get_array())
      all.push_back({.pid = pid_t(e["pid"].get_uint64().value_unsafe()),
                     .generated = e["generated"].get_uint64().value_unsafe()});
    return all;
  }
  /// As the scheduler counts them, which says whose places are free again.
  bool served(uint64_t n) const {
    return eventually([&] {
      auto s = status();
      return s.valid && s.root["counts"]["served"].get_uint64().value_unsafe() == n;
    });
  }
  finished explain(const std::string& what) { return ask(what, {"--explain"}); }

  /// Questions to both engines as they are; tells which process the node is that first answered so
  /// many that its engine tells what they took.
  void know_engines() {
    constexpr int told_after = 16;
    for (std::map<std::string, int> answers; answers[still_] < told_after; ++answers[still_]) {
      auto said = explain("What is a river?");
      ASSERT_EQ(said.exit_code, 0) << said.err;
      still_ = read_explained(said.err).answered;
      ++served_;
    }
    ASSERT_TRUE(eventually([&] {
      for (const auto& e : engines())
        if (e.generated > 0) still_pid_ = e.pid;
      return still_pid_ > 0;
    }));
    ASSERT_TRUE(served(served_));
  }
  /// Leaves a request at the node that stands still; the other node that it is sealed to is the
  /// other one, if that is wanted.
  void hang(bool other_is_second) {
    for (int i = 0; i < 60; ++i) {
      ::kill(still_pid_, SIGSTOP);
      hanging_.emplace(
          std::vector<std::string>{"fetch", trust_, "--prompt", "What is a lake?", "--explain"});
      ASSERT_TRUE(eventually([&] { return has(hanging_->err(), "ok     seal"); }));
      auto drawn = read_explained(hanging_->err());
      ASSERT_FALSE(drawn.second.empty()) << hanging_->err();
      bool good = drawn.first == still_ && (drawn.second != still_ || !other_is_second);
      if (good) {
        ASSERT_TRUE(eventually([&] { return gateway_count("spent") == served_ + 1; }));
        return;
      }
      ::kill(still_pid_, SIGCONT);
      auto said = hanging_->wait();
      ASSERT_EQ(said.exit_code, 0) << said.err;
      ASSERT_TRUE(served(++served_));
    }
    FAIL() << "sixty draws, and none of the kind that one in four is";
  }

  std::string still_;  // the node whose process stands still
  pid_t still_pid_ = 0;
  uint64_t served_ = 0;
  std::optional<running_lethe> hanging_;
};

TEST_F(TwoNodes, TheFirstAnswersAndItsReceiptHoldsAlsoIfItWasDrawnTwice) {
  bool twice = false, others = false;
  for (int i = 0; i < 60 && !(twice && others); ++i) {
    auto said = explain("My dog is called Pim. What is my dog called?");
    ASSERT_EQ(said.exit_code, 0) << said.err;
    EXPECT_TRUE(has(said.out, "Your dog is called Pim.")) << said.out;
    auto e = read_explained(said.err);
    ASSERT_EQ(e.second.size(), 8u) << said.err;
    EXPECT_EQ(e.answered, e.first) << said.err;
    EXPECT_TRUE(has(said.err, "ok     receipt")) << said.err;
    EXPECT_TRUE(has(said.err, "draw 1 of 3 for this body, 2 nodes each")) << said.err;
    EXPECT_TRUE(has(said.err, "1 - (1 - f)^6; k = 2 promises no more")) << said.err;
    (e.first == e.second ? twice : others) = true;
  }
  EXPECT_TRUE(twice && others);
}

TEST_F(TwoNodes, WhereTheFirstIsFullTheSecondIsAsked) {
  ASSERT_NO_FATAL_FAILURE(know_engines());
  ASSERT_NO_FATAL_FAILURE(hang(false));
  // The wallet is in use as long as that request waits: another one, then.
  std::filesystem::create_directory(folder_ / "other");
  std::filesystem::copy(folder_ / "account.secret", folder_ / "other/account.secret");
  trust_ = folder_.write("other/client.toml", read_file(trust_));
  buy();
  bool seen = false;
  for (int i = 0; i < 40 && !seen; ++i) {
    auto said = explain("What is a river?");
    if (said.exit_code != 0) {
      EXPECT_TRUE(has(said.err, "the node that was drawn is full")) << said.err;
      continue;  // the full node six times
    }
    auto e = read_explained(said.err);
    EXPECT_NE(e.answered, still_) << said.err;
    seen = e.first == still_ && e.second == e.answered;
  }
  EXPECT_TRUE(seen);
  ::kill(still_pid_, SIGCONT);
  auto said = hanging_->wait();
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_EQ(read_explained(said.err).answered, still_) << said.err;
}

TEST_F(TwoNodes, WhenTheFirstDiesBeforeItsFirstWordTheSecondAnswers) {
  ASSERT_NO_FATAL_FAILURE(know_engines());
  ASSERT_NO_FATAL_FAILURE(hang(true));
  ::kill(std::exchange(still_pid_, 0), SIGKILL);
  auto said = hanging_->wait();
  ASSERT_EQ(said.exit_code, 0) << said.err;
  auto e = read_explained(said.err);
  EXPECT_EQ(e.first, still_);
  EXPECT_EQ(e.answered, e.second) << said.err;
  EXPECT_TRUE(has(said.err, "ok     receipt")) << said.err;
  EXPECT_FALSE(has(said.err, "draw 2 of 3")) << said.err;
}

/// Whoever accepts one node only is not talked into two.
TEST_F(TwoNodes, AClientThatAcceptsOneNodeAsksNothing) {
  auto text = read_file(trust_);
  auto at = text.find("candidates_max = 2");
  ASSERT_NE(at, text.npos) << text;
  text.replace(at, 18, "candidates_max = 1");
  auto strict = folder_.write("strict.toml", text);
  auto said = run_lethe({"fetch", strict, "--prompt", "Hello"});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(has(said.err, "policy: k is 2; the trust file accepts 1")) << said.err;
  EXPECT_EQ(gateway_count("spent"), 0u);
}

}  // namespace
}  // namespace lethe
