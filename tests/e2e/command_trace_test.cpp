// Traces of a running cluster, as its operator reads them.
#include <gtest/gtest.h>

#include "tests/e2e/cluster.hpp"

namespace lethe {
namespace {

bool says(const std::string& text, const std::string& what) { return text.find(what) != text.npos; }

/// "Release" reaches the scheduler a moment after the client has its answer.
bool wait_for_release() {
  return eventually([] { return says(run_lethe({"trace", "stuck"}).out, "no request is stuck"); });
}

/// By which a client's operator finds its request.
std::string request_id(const http_said& said) {
  size_t at = said.head.find("X-Request-Id: ");
  return at == said.head.npos ? "" : said.head.substr(at + 14, said.head.find("\r", at) - at - 14);
}

TEST(CommandTrace, AnAnswerSaysByWhichIdItIsFound) {
  running_cluster c(lab_config());
  uint16_t port = c.port("api");
  ASSERT_TRUE(c.tells("ready: 1 of 1", 120)) << c.errors();
  for (const auto& body : {completion(4), completion(4, R"(,"stream":true)"),
                           completion(4, R"(,"temperature":101)")}) {
    auto id = request_id(http_ask(port, "/v1/completions", body));
    ASSERT_EQ(id.size(), 16u) << body;
    auto follow = run_lethe({"trace", "follow", id});
    EXPECT_EQ(follow.exit_code, 0) << body << follow.err;
  }
  EXPECT_EQ(request_id(http_ask(port, "/v1/models")), "") << "it is of no request";
}

TEST(CommandTrace, FollowsARequestThroughSeparateProcesses) {
  running_cluster c(lab_config("[engines]\nprocesses = \"separate\"\n[trace]\nmode = \"all\"\n"));
  uint16_t port = c.port("api");
  ASSERT_TRUE(c.tells("ready: 1 of 1", 120)) << c.errors();
  auto said = http_ask(port, "/v1/completions", completion(20));
  ASSERT_EQ(said.status, 200);
  ASSERT_TRUE(wait_for_release());

  std::string file = c.folder() / "recording";
  finished follow, save;
  EXPECT_TRUE(eventually([&] {  // what took the last piece may not have left its record yet
    follow = run_lethe({"trace", "follow", request_id(said)});
    save = run_lethe({"trace", "save", file});
    return run_lethe({"trace", "follow", "--from", file}).out == follow.out;
  }));
  ASSERT_EQ(follow.exit_code, 0) << follow.err;
  EXPECT_TRUE(says(follow.out, "request " + request_id(said) + ": ")) << follow.out;
  EXPECT_TRUE(says(follow.out, "2 processes")) << follow.out;
  for (const char* line : {"face@local → scheduler@local", "→ engine 0@local (passed on)",
                           "→ request 0@local", "total ", "handling", "between messages"})
    EXPECT_TRUE(says(follow.out, line)) << line << "\n" << follow.out;
  EXPECT_FALSE(says(follow.out, "gap")) << follow.out;

  ASSERT_EQ(save.exit_code, 0) << save.err;
  EXPECT_TRUE(says(save.out, "2 processes, 1 requests")) << save.out;
  ASSERT_EQ(run_lethe({"down", "--now"}).exit_code, 0);

  // The cluster is gone; its recording tells the same.
  EXPECT_EQ(run_lethe({"trace", "follow", "--from", file}).out, follow.out);
  EXPECT_TRUE(says(run_lethe({"trace", "slow", "--from", file, "--by", "queue"}).out, "Submit"));
  EXPECT_TRUE(says(run_lethe({"trace", "stuck", "--from", file}).out, "no request is stuck"));
  EXPECT_TRUE(says(run_lethe({"trace", "diff", file, file}).out, "1.00"));
  for (const char* kind : {"--perfetto", "--otlp"}) {
    std::string to = c.folder() / "export";
    auto ran = run_lethe({"trace", "export", "--from", file, kind, to});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_TRUE(json_answer(read_file(to)).valid) << kind;
  }
}

/// The line of a replay that begins with `what`.
std::string line_of(const std::string& text, const std::string& what) {
  size_t at = text.find("\n" + what);
  return at == text.npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

TEST(CommandTrace, ReplaysWhatARealClusterDidTheSameEveryTime) {
  running_cluster c(
      lab_config("[engines]\ncount = 2\nprocesses = \"separate\"\n[trace]\nmode = \"all\"\n"));
  uint16_t port = c.port("api");
  ASSERT_TRUE(c.tells("ready: 2 of 2", 120)) << c.errors();
  std::vector<std::thread> clients;
  for (int i = 0; i < 6; ++i)
    clients.emplace_back([port, i] {
      http_ask(port, "/v1/completions", completion(8 + 4 * i, i % 2 ? R"(,"stream":true)" : ""));
    });
  for (auto& one : clients) one.join();
  std::string file = c.folder() / "recording";
  auto saved = [&] { return run_lethe({"trace", "save", file}).out; };
  ASSERT_TRUE(says(saved(), "6 requests"));
  ASSERT_TRUE(wait_for_release());
  ASSERT_TRUE(says(saved(), "6 requests"));
  auto live = run_lethe({"trace", "replay"});
  EXPECT_TRUE(says(live.out, "replaying 6 requests on 2 engines: ")) << live.out << live.err;
  ASSERT_EQ(run_lethe({"down", "--now"}).exit_code, 0);

  auto replay = run_lethe({"trace", "replay", file});
  EXPECT_EQ(replay.exit_code, 0) << replay.out << replay.err;
  EXPECT_TRUE(says(replay.out, "replaying 6 requests on 2 engines: ")) << replay.out;
  EXPECT_EQ(line_of(replay.out, "other order"), "other order    0") << replay.out;
  EXPECT_EQ(line_of(replay.out, "not replayed"), "not replayed   0") << replay.out;
  EXPECT_EQ(line_of(replay.out, "not recorded"), "not recorded   0") << replay.out;
  EXPECT_EQ(line_of(replay.out, "checks"), "checks         held after every message");
  EXPECT_FALSE(says(replay.out, "gap")) << replay.out;
  EXPECT_EQ(run_lethe({"trace", "replay", "--from", file}).out, replay.out);
}

TEST(CommandTrace, ARecordingThatIsNoneOrCutOffIsNotReplayed) {
  scratch_folder folder;
  auto refused = [&](const std::string& content, const std::string& why) {
    auto ran = run_lethe({"trace", "replay", folder.write("x", content)});
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_TRUE(says(ran.err, why)) << ran.err;
    EXPECT_EQ(ran.error_lines(), 1u);
    EXPECT_EQ(ran.out, "");
  };
  refused("what is this", "no recording; `lethe trace save FILE` makes one");
  refused("LetheTr2" + std::string(64, '\0'), "no recording");
  refused("LetheTr1" + std::string("\0\0\0\0\xff\0\0\0", 8), "no recording");
  auto none = run_lethe({"trace", "replay", folder / "none"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.error_lines(), 1u);
}

TEST(CommandTrace, ACorruptRecordingOrAWrongIdIsOneClearLine) {
  scratch_folder folder;
  auto none = run_lethe({"trace", "list", "--from", folder.write("x", "what is this")});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_TRUE(says(none.err, "no recording")) << none.err;
  EXPECT_EQ(none.error_lines(), 1u);
  auto neither = run_lethe({"trace", "export", "--from", folder / "x"});
  EXPECT_TRUE(says(neither.err, "--perfetto FILE or --otlp FILE")) << neither.err;
  EXPECT_EQ(run_lethe({"trace"}).exit_code, 2);
  EXPECT_EQ(run_lethe({"trace", "list", "--last", "0"}).exit_code, 2);
}

TEST(CommandTrace, SaysThatTracingIsOffAndHowToTurnItOn) {
  running_cluster c(lab_config("[trace]\nmode = \"off\"\n"));
  ASSERT_TRUE(c.tells("ready: 1 of 1", 120)) << c.errors();
  for (std::vector<std::string> words :
       {std::vector<std::string>{"list"}, {"follow"}, {"slow"}, {"stuck"}}) {
    words.insert(words.begin(), "trace");
    auto ran = run_lethe(words);
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_TRUE(says(ran.err, "mode = \"off\"; write \"allowed\"")) << ran.err;
    EXPECT_EQ(ran.error_lines(), 1u);
  }
}

}  // namespace
}  // namespace lethe
